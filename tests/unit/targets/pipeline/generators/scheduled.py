"""For tests: schedules itself although an autoscheduler runs, if its parameter says so."""

import halide as hl

x, y, xi, yi = hl.vars("x y xi yi")


@hl.generator(name="scheduled")
class Scheduled(hl.Generator):
    way = hl.GeneratorParam("none")
    input = hl.InputBuffer(hl.Float(32), 2)
    output = hl.OutputBuffer(hl.Float(32), 2)

    def generate(self) -> None:
        blurred = hl.Func("blurred")
        blurred[x, y] = self.input[x, y] + self.input[x + 1, y]
        self.output[x, y] = blurred[x, y] + blurred[x, y + 1]
        self.input.set_estimates([(0, 257), (0, 129)])
        self.output.set_estimates([(0, 256), (0, 128)])
        if self.way == "guarded" and not self.using_autoscheduler():
            self.output.vectorize(x, 8)
        if self.way == "loops":
            self.output.tile(x, y, xi, yi, 64, 8).vectorize(xi, 8).parallel(y)
            blurred.compute_at(self.output, x).vectorize(x, 8)


if __name__ == "__main__":
    hl.main()
