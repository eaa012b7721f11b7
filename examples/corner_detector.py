"""Corner response of Harris and Stephens (1988) over an 8-bit RGB image.

input is (x, y, 3), uint8; response is (x, y), float32. Luma, Sobel gradients, their products summed over a
square window, then det(M) - sensitivity * trace(M) ** 2. Edges are repeated.
"""

import halide as hl

x, y = hl.vars("x y")


@hl.generator(name="corner_detector")
class CornerDetector(hl.Generator):
    width = hl.GeneratorParam(1536)
    height = hl.GeneratorParam(1024)
    radius = hl.GeneratorParam(1)  # of the window

    input = hl.InputBuffer(hl.UInt(8), 3)
    sensitivity = hl.InputScalar(hl.Float(32))
    response = hl.OutputBuffer(hl.Float(32), 2)

    def generate(self) -> None:
        if self.radius < 1:
            raise ValueError(f"corner_detector: radius is {self.radius}; it must be 1 or more")
        clamped = hl.BoundaryConditions.repeat_edge(self.input)

        luma = hl.Func("luma")
        red, green, blue = (hl.f32(clamped[x, y, channel]) for channel in range(3))
        luma[x, y] = (hl.f32(0.299) * red + hl.f32(0.587) * green + hl.f32(0.114) * blue) / 255.0

        gradient_x, gradient_y = hl.Func("gradient_x"), hl.Func("gradient_y")
        gradient_x[x, y] = (
            (luma[x + 1, y - 1] - luma[x - 1, y - 1])
            + 2.0 * (luma[x + 1, y] - luma[x - 1, y])
            + (luma[x + 1, y + 1] - luma[x - 1, y + 1])
        ) / 8.0
        gradient_y[x, y] = (
            (luma[x - 1, y + 1] - luma[x - 1, y - 1])
            + 2.0 * (luma[x, y + 1] - luma[x, y - 1])
            + (luma[x + 1, y + 1] - luma[x + 1, y - 1])
        ) / 8.0

        xx = self.window_sum("xx", gradient_x[x, y] * gradient_x[x, y])
        xy = self.window_sum("xy", gradient_x[x, y] * gradient_y[x, y])
        yy = self.window_sum("yy", gradient_y[x, y] * gradient_y[x, y])
        determinant = xx[x, y] * yy[x, y] - xy[x, y] * xy[x, y]
        trace = xx[x, y] + yy[x, y]
        self.response[x, y] = determinant - self.sensitivity * trace * trace

        self.input.set_estimates([(0, self.width), (0, self.height), (0, 3)])
        self.sensitivity.set_estimate(0.04)
        self.response.set_estimates([(0, self.width), (0, self.height)])

        if not self.using_autoscheduler():
            lanes = self.natural_vector_size(hl.Float(32))
            self.response.parallel(y, 8).vectorize(x, lanes)
            for func in (luma, gradient_x, gradient_y):
                func.compute_root().parallel(y, 8).vectorize(x, lanes)

    def window_sum(self, name: str, value: hl.Expr) -> hl.Func:
        """The sum of value, an expression in x and y, over the window around each pixel."""
        product = hl.Func(f"product_{name}")
        product[x, y] = value
        offsets = range(-self.radius, self.radius + 1)
        total = hl.f32(0.0)
        for dy in offsets:
            for dx in offsets:
                total += product[x + dx, y + dy]
        summed = hl.Func(f"sum_{name}")
        summed[x, y] = total
        return summed


if __name__ == "__main__":
    hl.main()
