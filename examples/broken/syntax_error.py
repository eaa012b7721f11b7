"""For tests: a generator that Python cannot parse."""

import halide as hl


@hl.generator(name="syntax_error")
class SyntaxError_(hl.Generator):
    input = hl.InputBuffer(hl.UInt(8), 2)
    output = hl.OutputBuffer(hl.UInt(8), 2)

    def generate(self) -> None:
        self.output[x, y] = (self.input[x, y]


if __name__ == "__main__":
    hl.main()
