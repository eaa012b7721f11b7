"""A long sum: Adams2019 leaves it to one lane of one thread, Li2018 does not."""

import halide as hl


@hl.generator(name="total")
class Total(hl.Generator):
    input = hl.InputBuffer(hl.Float(32), 1)
    output = hl.OutputBuffer(hl.Float(32), 1)

    def generate(self) -> None:
        x, r = hl.Var("x"), hl.RDom([(0, 1 << 22)])
        self.output[x] = 0.0
        self.output[x] += self.input[r + x]
        self.input.set_estimates([(0, (1 << 22) + 4)])
        self.output.set_estimates([(0, 4)])


if __name__ == "__main__":
    hl.main()
