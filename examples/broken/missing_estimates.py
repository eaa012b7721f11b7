"""For tests: a generator that no autoscheduler takes, because its inputs and its output have no estimates."""

import halide as hl

x, y = hl.vars("x y")


@hl.generator(name="missing_estimates")
class MissingEstimates(hl.Generator):
    input = hl.InputBuffer(hl.UInt(8), 2)
    offset = hl.InputScalar(hl.UInt(8))
    output = hl.OutputBuffer(hl.UInt(8), 2)

    def generate(self) -> None:
        self.output[x, y] = self.input[x, y] + self.offset


if __name__ == "__main__":
    hl.main()
