"""A schedule of its own that copies a Func for one that reads it through an inlined Func."""

import halide as hl


@hl.generator(name="copy_for_an_indirect_reader")
class CopyForAnIndirectReader(hl.Generator):
    input = hl.InputBuffer(hl.Float(32), 2)
    output = hl.OutputBuffer(hl.Float(32), 2)

    def generate(self) -> None:
        g = self
        x, y = hl.vars("x y")
        fine, half, small = hl.Func("fine"), hl.Func("half"), hl.Func("small")
        fine[x, y] = hl.sqrt(g.input[x, y])
        half[x, y] = fine[x, 2 * y] + fine[x, 2 * y + 1]
        small[x, y] = half[2 * x, y] + half[2 * x + 1, y]
        g.output[x, y] = small[x / 2, y / 2] + fine[x, y]
        g.input.set_estimates([(0, 256), (0, 256)])
        g.output.set_estimates([(0, 256), (0, 256)])
        if not g.using_autoscheduler():
            small.compute_root()
            fine.clone_in(small).compute_at(small, y)


if __name__ == "__main__":
    hl.main()
