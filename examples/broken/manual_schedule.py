"""For tests: a generator that schedules itself although an autoscheduler was asked for."""

import halide as hl

x, y = hl.vars("x y")


@hl.generator(name="manual_schedule")
class ManualSchedule(hl.Generator):
    input = hl.InputBuffer(hl.UInt(8), 2)
    output = hl.OutputBuffer(hl.UInt(8), 2)

    def generate(self) -> None:
        doubled = hl.Func("doubled")
        doubled[x, y] = self.input[x, y] * 2
        self.output[x, y] = doubled[x, y] + doubled[x + 1, y]

        self.input.set_estimates([(0, 641), (0, 480)])
        self.output.set_estimates([(0, 640), (0, 480)])

        doubled.compute_root()
        self.output.vectorize(x, 16).parallel(y)


if __name__ == "__main__":
    hl.main()
