"""For tests: a generator that never ends, and uses no processor time. Run it under a time limit."""

import time

import halide as hl


@hl.generator(name="hangs")
class Hangs(hl.Generator):
    output = hl.OutputBuffer(hl.UInt(8), 2)

    def generate(self) -> None:
        while True:
            time.sleep(1)


if __name__ == "__main__":
    hl.main()
