"""Edges of an 8-bit image, all in integers: smoothed, Sobel's gradient, and made thicker.

input and output are (x, y), uint8; the strength of an edge is |gx| + |gy| of the smoothed image, at most 255, and the
output is the strongest within `thickness` pixels. The image's edges are repeated.
"""

import halide as hl

x, y = hl.vars("x y")


@hl.generator(name="edge_detector")
class EdgeDetector(hl.Generator):
    width = hl.GeneratorParam(1920)
    height = hl.GeneratorParam(1080)
    thickness = hl.GeneratorParam(1)

    input = hl.InputBuffer(hl.UInt(8), 2)
    output = hl.OutputBuffer(hl.UInt(8), 2)

    def generate(self) -> None:
        if not 0 <= self.thickness <= 3:
            raise ValueError(f"edge_detector: thickness is {self.thickness}; it must be from 0 to 3")
        clamped = hl.BoundaryConditions.repeat_edge(self.input)

        columns, smooth = hl.Func("columns"), hl.Func("smooth")
        columns[x, y] = hl.u16(clamped[x, y - 1]) + hl.u16(2) * hl.u16(clamped[x, y]) + hl.u16(clamped[x, y + 1])
        smooth[x, y] = hl.u8(
            (columns[x - 1, y] + hl.u16(2) * columns[x, y] + columns[x + 1, y] + hl.u16(8)) >> hl.u16(4)
        )

        def at(dx: int, dy: int) -> hl.Expr:
            return hl.i16(smooth[x + dx, y + dy])

        two = hl.i16(2)
        across, down, strength = hl.Func("across"), hl.Func("down"), hl.Func("strength")
        across[x, y] = at(1, -1) + two * at(1, 0) + at(1, 1) - at(-1, -1) - two * at(-1, 0) - at(-1, 1)
        down[x, y] = at(-1, 1) + two * at(0, 1) + at(1, 1) - at(-1, -1) - two * at(0, -1) - at(1, -1)
        steepness = hl.i16(hl.abs(across[x, y])) + hl.i16(hl.abs(down[x, y]))  # at most 2040
        strength[x, y] = hl.u8(hl.min(steepness, hl.i16(255)))

        widened = hl.Func("widened")
        widest = strength[x, y]
        for offset in range(-self.thickness, self.thickness + 1):
            widest = hl.max(widest, strength[x + offset, y])
        widened[x, y] = widest
        highest = widened[x, y]
        for offset in range(-self.thickness, self.thickness + 1):
            highest = hl.max(highest, widened[x, y + offset])
        self.output[x, y] = highest

        self.input.set_estimates([(0, self.width), (0, self.height)])
        self.output.set_estimates([(0, self.width), (0, self.height)])

        if not self.using_autoscheduler():
            lanes = self.natural_vector_size(hl.UInt(8))
            self.output.parallel(y).vectorize(x, lanes)
            for stage in (smooth, strength):
                stage.compute_root().parallel(y).vectorize(x, lanes)


if __name__ == "__main__":
    hl.main()
