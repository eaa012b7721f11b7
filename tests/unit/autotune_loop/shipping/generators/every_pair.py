"""A generator whose own schedule alone runs at its estimates: at the root `pairs` has 77 GB."""

import halide as hl

x, y, u, v = hl.vars("x y u v")


@hl.generator(name="every_pair")
class EveryPair(hl.Generator):
    input = hl.InputBuffer(hl.UInt(16), 2)
    output = hl.OutputBuffer(hl.UInt(16), 2)

    def generate(self) -> None:
        pairs = hl.Func("pairs")
        pairs[x, y, u, v] = self.input[x, y] + self.input[u, v]
        self.output[x, y] = pairs[x, y, x, y]
        self.input.set_estimates([(0, 512), (0, 384)])
        self.output.set_estimates([(0, 512), (0, 384)])
        if not self.using_autoscheduler():
            self.output.vectorize(x, 8)


if __name__ == "__main__":
    hl.main()
