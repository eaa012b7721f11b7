"""The blur of blur.cpp as a Python generator, scheduled by what `sdk ship` wrote into schedules/."""

import halide as hl

try:
    from schedules import blur_schedule
except ImportError:
    blur_schedule = None

x, y = hl.vars("x y")


@hl.generator(name="blur")
class Blur(hl.Generator):
    input = hl.InputBuffer(hl.UInt(16), 2)
    output = hl.OutputBuffer(hl.UInt(16), 2)

    def generate(self) -> None:
        padded = hl.BoundaryConditions.repeat_edge(self.input)
        across = hl.Func("across")
        across[x, y] = (padded[x - 1, y] + padded[x, y] + padded[x + 1, y]) / 3
        self.output[x, y] = (across[x, y - 1] + across[x, y] + across[x, y + 1]) / 3

        self.input.set_estimates([(0, 1536), (0, 1024)])
        self.output.set_estimates([(0, 1536), (0, 1024)])

        if self.using_autoscheduler():
            return
        if blur_schedule is None:
            across.compute_root()
            self.output.compute_root()
        else:
            blur_schedule.apply_schedule(hl.Pipeline([self.output]), self.target())


if __name__ == "__main__":
    hl.main()
