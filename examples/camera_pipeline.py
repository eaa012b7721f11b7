"""From a sensor's Bayer mosaic to a picture, all in integers.

raw is (x, y), uint16, 10 bits used, in RGGB order (red at even x and even y); its edges are mirrored, which
keeps the order of colours. output is (x, y, 3), uint8. Steps: black level and white balance, demosaicing
(green along the direction that changes less, red and blue bilinear), colour matrix, tone curve from a table,
sharpening.

Scalars: black_level in raw units; gain_red and gain_blue in 1/256; tone in raw units, smaller for brighter
shadows; sharpness in 1/32, up to 127. matrix is (input channel, output channel), int16, in 1/256.
"""

import halide as hl

x, y, c, v = hl.vars("x y c v")

WHITE = 1023  # the largest value of a 10-bit sensor


def average(first: hl.Expr, second: hl.Expr) -> hl.Expr:
    """Rounded mean of two 10-bit values in uint16."""
    return (first + second + hl.u16(1)) >> 1


def average4(first: hl.Expr, second: hl.Expr, third: hl.Expr, fourth: hl.Expr) -> hl.Expr:
    """Rounded mean of four 10-bit values in uint16."""
    return (first + second + third + fourth + hl.u16(2)) >> 2


def smoother(left: hl.Expr, right: hl.Expr, up: hl.Expr, down: hl.Expr) -> hl.Expr:
    """The mean along the direction in which the two neighbours differ less."""
    return hl.select(hl.absd(left, right) < hl.absd(up, down), average(left, right), average(up, down))


@hl.generator(name="camera_pipeline")
class CameraPipeline(hl.Generator):
    width = hl.GeneratorParam(1920)
    height = hl.GeneratorParam(1280)

    raw = hl.InputBuffer(hl.UInt(16), 2)
    matrix = hl.InputBuffer(hl.Int(16), 2)
    black_level = hl.InputScalar(hl.UInt(16))
    gain_red = hl.InputScalar(hl.UInt(16))
    gain_blue = hl.InputScalar(hl.UInt(16))
    tone = hl.InputScalar(hl.UInt(16))
    sharpness = hl.InputScalar(hl.UInt(8))
    output = hl.OutputBuffer(hl.UInt(8), 3)

    def generate(self) -> None:
        mosaic = hl.BoundaryConditions.mirror_interior(self.raw)
        red = self.plane("red", mosaic[2 * x, 2 * y], self.gain_red)
        green_r = self.plane("green_r", mosaic[2 * x + 1, 2 * y], hl.u16(256))
        green_b = self.plane("green_b", mosaic[2 * x, 2 * y + 1], hl.u16(256))
        blue = self.plane("blue", mosaic[2 * x + 1, 2 * y + 1], self.gain_blue)
        demosaiced = self.demosaic(red, green_r, green_b, blue)

        corrected = hl.Func("corrected")
        mixed = hl.i32(128)  # half of the divisor 256, to round to nearest
        for channel in range(3):
            mixed += hl.i32(self.matrix[channel, c]) * hl.i32(demosaiced[x, y, channel])
        corrected[x, y, c] = hl.u16(hl.clamp(mixed >> 8, 0, WHITE))

        curve = hl.Func("curve")
        knee = hl.max(hl.u32(self.tone), hl.u32(1))
        value = hl.u32(v)
        curve[v] = hl.u8((255 * value * (knee + WHITE) / (value + knee)) / WHITE)
        toned = hl.Func("toned")
        toned[x, y, c] = curve[hl.i32(corrected[x, y, c])]

        rows, blurred = hl.Func("rows"), hl.Func("blurred")
        rows[x, y, c] = hl.i16(toned[x - 1, y, c]) + 2 * hl.i16(toned[x, y, c]) + hl.i16(toned[x + 1, y, c])
        blurred[x, y, c] = (rows[x, y - 1, c] + 2 * rows[x, y, c] + rows[x, y + 1, c] + hl.i16(8)) >> 4
        centre = hl.i16(toned[x, y, c])
        strength = hl.i16(hl.min(self.sharpness, hl.u8(127)))  # 127 * 255 just fits 16 bits
        sharpened = centre + (((centre - blurred[x, y, c]) * strength) >> 5)
        self.output[x, y, c] = hl.u8(hl.clamp(sharpened, 0, 255))

        self.set_all_estimates()
        if not self.using_autoscheduler():
            curve.compute_root()
            for func in (self.output, toned, demosaiced, red, green_r, green_b, blue):
                func.compute_root().parallel(y, 8).vectorize(x, 16)

    def plane(self, name: str, value: hl.Expr, gain: hl.Expr) -> hl.Func:
        """One colour of the mosaic at half size, black level taken off and gain applied."""
        signal = hl.max(value, self.black_level) - self.black_level
        func = hl.Func(name)
        func[x, y] = hl.u16(hl.min((hl.u32(signal) * hl.u32(gain)) >> 8, WHITE))
        return func

    def demosaic(self, red: hl.Func, green_r: hl.Func, green_b: hl.Func, blue: hl.Func) -> hl.Func:
        """All three colours at every pixel, from four half-size planes; green_r shares its rows with red."""
        green_at_red, green_at_blue = hl.Func("green_at_red"), hl.Func("green_at_blue")
        green_at_red[x, y] = smoother(green_r[x - 1, y], green_r[x, y], green_b[x, y - 1], green_b[x, y])
        green_at_blue[x, y] = smoother(green_b[x, y], green_b[x + 1, y], green_r[x, y], green_r[x, y + 1])

        hx, hy = x // 2, y // 2
        reds = (
            red[hx, hy],
            average(red[hx, hy], red[hx + 1, hy]),
            average(red[hx, hy], red[hx, hy + 1]),
            average4(red[hx, hy], red[hx + 1, hy], red[hx, hy + 1], red[hx + 1, hy + 1]),
        )
        greens = (green_at_red[hx, hy], green_r[hx, hy], green_b[hx, hy], green_at_blue[hx, hy])
        blues = (
            average4(blue[hx - 1, hy - 1], blue[hx, hy - 1], blue[hx - 1, hy], blue[hx, hy]),
            average(blue[hx, hy - 1], blue[hx, hy]),
            average(blue[hx - 1, hy], blue[hx, hy]),
            blue[hx, hy],
        )
        demosaiced = hl.Func("demosaiced")
        demosaiced[x, y, c] = hl.mux(c, [self.by_position(*four) for four in (reds, greens, blues)])
        return demosaiced

    def by_position(self, red: hl.Expr, green_r: hl.Expr, green_b: hl.Expr, blue: hl.Expr) -> hl.Expr:
        """The value for this pixel's place in the 2x2 mosaic."""
        red, green_r, green_b, blue = (hl.u16(value) for value in (red, green_r, green_b, blue))  # to hl.Expr
        odd = x % 2 == 1
        return hl.select(y % 2 == 0, hl.select(odd, green_r, red), hl.select(odd, blue, green_b))

    def set_all_estimates(self) -> None:
        """Sizes and typical values of every argument."""
        self.raw.set_estimates([(0, self.width), (0, self.height)])
        self.matrix.set_estimates([(0, 3), (0, 3)])
        self.black_level.set_estimate(32)
        self.gain_red.set_estimate(448)
        self.gain_blue.set_estimate(384)
        self.tone.set_estimate(400)
        self.sharpness.set_estimate(24)
        self.output.set_estimates([(0, self.width), (0, self.height), (0, 3)])


if __name__ == "__main__":
    hl.main()
