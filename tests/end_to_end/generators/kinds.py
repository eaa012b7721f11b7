"""Generators with arguments of every kind that Halide's Python generators have."""

import halide as hl

x, y, c = hl.Var("x"), hl.Var("y"), hl.Var("c")


@hl.generator(name="typed_scalars")
class TypedScalars(hl.Generator):
    image = hl.InputBuffer(hl.UInt(8), 2)
    adds = hl.InputScalar(hl.Bool())
    mask = hl.InputScalar(hl.UInt(64))
    offset = hl.InputScalar(hl.Int(8))
    gain = hl.InputScalar(hl.Float(64))
    output = hl.OutputBuffer(hl.Float(32), 2)

    def generate(self) -> None:
        masked = hl.f32(hl.u64(self.image[x, y]) & self.mask)
        value = hl.f32(self.offset) * hl.f32(self.gain)
        # In Python, Halide takes the estimate of a boolean for an integer.
        adds = hl.u8(self.adds) == 1
        self.output[x, y] = hl.select(adds, masked + value, masked - value)
        self.image.set_estimates([(0, 64), (0, 32)])
        self.output.set_estimates([(0, 64), (0, 32)])
        for scalar, value in ((self.adds, True), (self.mask, 2**40 - 1), (self.offset, -3), (self.gain, 0.25)):
            scalar.set_estimate(value)


@hl.generator(name="half_gain")
class HalfGain(hl.Generator):
    """Halide has no estimates of scalars of 16 bits, so it is for schedules of its own."""

    image = hl.InputBuffer(hl.UInt(8), 2)
    gain = hl.InputScalar(hl.Float(16))
    brain_gain = hl.InputScalar(hl.BFloat(16))
    output = hl.OutputBuffer(hl.Float(32), 2)

    def generate(self) -> None:
        self.output[x, y] = hl.f32(self.gain) * hl.f32(self.brain_gain) + hl.f32(self.image[x, y]) * 0
        self.image.set_estimates([(0, 64), (0, 32)])
        self.output.set_estimates([(0, 64), (0, 32)])


@hl.generator(name="unlike_shapes")
class UnlikeShapes(hl.Generator):
    image = hl.InputBuffer(hl.UInt(8), 3)
    total = hl.OutputBuffer(hl.UInt(32), 0)
    row = hl.OutputBuffer(hl.Float(16), 1)
    chosen = hl.OutputBuffer(hl.Bool(), 3)
    brain = hl.OutputBuffer(hl.BFloat(16), 2)

    def generate(self) -> None:
        r = hl.RDom([(0, 64), (0, 32), (0, 3)])
        self.total[()] = hl.u32(0)
        self.total[()] += hl.u32(self.image[r.x, r.y, r.z])
        self.row[x] = hl.cast(hl.Float(16), hl.f32(self.image[x, 0, 0]) / 2)
        self.chosen[x, y, c] = self.image[x, y, c] > 100
        self.brain[x, y] = hl.cast(hl.BFloat(16), hl.f32(self.image[x, y, 1]))
        self.image.dim(0).set_stride(3)
        self.image.dim(2).set_stride(1)
        self.image.dim(2).set_bounds(0, 3)
        self.image.set_estimates([(0, 64), (0, 32), (0, 3)])
        self.total.set_estimates([])
        self.row.set_estimates([(0, 64)])
        self.chosen.set_estimates([(0, 64), (0, 32), (0, 3)])
        self.brain.set_estimates([(0, 64), (0, 32)])


@hl.generator(name="any_type")
class AnyType(hl.Generator):
    """Its types and dimensions are parameters: -p image.type=int32 -p image.dim=2 -p output.type=int32."""

    image = hl.InputBuffer(None, None)
    output = hl.OutputBuffer(None, 2)

    def generate(self) -> None:
        pair = hl.Func("pair")
        pair[x, y] = (self.image[x, y], self.image[x, y] + 1)
        self.output[x, y] = pair[x, y][0] + pair[x + 1, y][1]
        self.image.set_estimates([(0, 65), (0, 32)])
        self.output.set_estimates([(0, 64), (0, 32)])


@hl.generator(name="tuple_output")
class TupleOutput(hl.Generator):
    image = hl.InputBuffer(hl.UInt(8), 2)
    output = hl.OutputBuffer([hl.UInt(16), hl.Float(32)], 2)

    def generate(self) -> None:
        doubled = hl.u16(self.image[x, y]) * 2
        self.output[x, y] = (doubled, hl.f32(doubled) / 3)
        self.image.set_estimates([(0, 64), (0, 32)])
        self.output.set_estimates([(0, 64), (0, 32)])
