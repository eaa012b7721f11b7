"""A chain of 3x3 smoothing stencils on a 16-bit image, all in integers.

input and output are (x, y), uint16. Edges are repeated before the first stage only, so each stage needs one
more ring of the stage before it: the schedule decides between storing, recomputing and fusing the stages.
"""

import halide as hl

x, y = hl.vars("x y")


@hl.generator(name="stencil_chain")
class StencilChain(hl.Generator):
    width = hl.GeneratorParam(1536)
    height = hl.GeneratorParam(1024)
    stages = hl.GeneratorParam(8)

    input = hl.InputBuffer(hl.UInt(16), 2)
    output = hl.OutputBuffer(hl.UInt(16), 2)

    def generate(self) -> None:
        if self.stages < 1:
            raise ValueError(f"stencil_chain: stages is {self.stages}; it must be 1 or more")
        chain = [hl.BoundaryConditions.repeat_edge(self.input)]
        for stage in range(self.stages):
            before = chain[-1]
            total = hl.u32(8)  # half of the divisor 16, to round to nearest
            for dy in range(-1, 2):
                for dx in range(-1, 2):
                    weight = (2 - abs(dx)) * (2 - abs(dy))
                    total += hl.u32(weight) * hl.u32(before[x + dx, y + dy])
            smoothed = hl.Func(f"stage_{stage}")
            smoothed[x, y] = hl.u16(total >> 4)
            chain.append(smoothed)
        self.output[x, y] = chain[-1][x, y]

        self.input.set_estimates([(0, self.width), (0, self.height)])
        self.output.set_estimates([(0, self.width), (0, self.height)])

        if not self.using_autoscheduler():
            for smoothed in [*chain[1:-1], self.output]:
                smoothed.compute_root().parallel(y, 8).vectorize(x, self.natural_vector_size(hl.UInt(16)))


if __name__ == "__main__":
    hl.main()
