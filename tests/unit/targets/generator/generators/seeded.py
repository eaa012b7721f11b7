"""For tests: two generators whose parameters decide what is compiled, and which print a lot when asked."""

import halide as hl

x, y = hl.vars("x y")


@hl.generator(name="seeded_blur")
class SeededBlur(hl.Generator):
    invert = hl.GeneratorParam(True)
    talk_bytes = hl.GeneratorParam(0)

    input = hl.InputBuffer(hl.UInt(8), 2)
    output = hl.OutputBuffer(hl.UInt(8), 2)

    def generate(self) -> None:
        if self.talk_bytes:
            print("~" * self.talk_bytes + " all said", flush=True)
        if self.invert not in (True, False):
            raise ValueError("invert is no truth value")
        source = hl.Func("source")
        source[x, y] = 255 - self.input[x, y] if self.invert else self.input[x, y]
        wide = hl.Func("wide")
        wide[x, y] = hl.u16(source[x, y]) + hl.u16(source[x + 1, y]) + hl.u16(source[x + 2, y])
        self.output[x, y] = hl.u8((wide[x, y] + wide[x, y + 1] + wide[x, y + 2]) / 9)
        self.input.set_estimates([(0, 514), (0, 402)])
        self.output.set_estimates([(0, 512), (0, 400)])


@hl.generator(name="another")
class Another(hl.Generator):
    input = hl.InputBuffer(hl.UInt(8), 2)
    output = hl.OutputBuffer(hl.UInt(8), 2)

    def generate(self) -> None:
        self.output[x, y] = self.input[x, y] + 1
