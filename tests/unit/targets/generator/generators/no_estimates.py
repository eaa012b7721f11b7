"""For tests: generators that lack one estimate each, and one whose parameters have every type."""

import halide as hl

x, y = hl.vars("x y")


class OneEstimateShort(hl.Generator):
    missing = ""
    input = hl.InputBuffer(hl.UInt(8), 2)
    offset = hl.InputScalar(hl.UInt(8))
    output = hl.OutputBuffer(hl.UInt(8), 2)

    def generate(self) -> None:
        doubled = hl.Func("doubled")
        doubled[x, y] = self.input[x, y] + self.offset
        self.output[x, y] = doubled[x, y] + doubled[x + 1, y]
        if self.missing != "input":
            self.input.set_estimates([(0, 101), (0, 100)])
        if self.missing != "offset":
            self.offset.set_estimate(3)
        if self.missing != "output":
            self.output.set_estimates([(0, 100), (0, 100)])


@hl.generator(name="no_input")
class NoInput(OneEstimateShort):
    missing = "input"


@hl.generator(name="no_offset")
class NoOffset(OneEstimateShort):
    missing = "offset"


@hl.generator(name="no_output")
class NoOutput(OneEstimateShort):
    missing = "output"


@hl.generator(name="typed")
class Typed(hl.Generator):
    flag = hl.GeneratorParam(True)
    ratio = hl.GeneratorParam(1.5)
    count = hl.GeneratorParam(2)
    output = hl.OutputBuffer(hl.UInt(8), 1)

    def generate(self) -> None:
        if self.count > 4:
            raise ValueError(f"typed: count is {self.count}; it must be at most 4")
        self.output[x] = hl.u8(x)
        self.output.set_estimates([(0, 100)])
