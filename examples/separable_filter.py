"""Separable blur of an 8-bit planar image with binomial (Gaussian-like) weights, all in integers.

input and output are (x, y, channel), uint8. Edges are repeated. The weights of one direction are the binomial
coefficients C(2 * radius, k), whose sum is 4 ** radius, so the division is a shift.
"""

from math import comb

import halide as hl

x, y, c = hl.vars("x y c")


@hl.generator(name="separable_filter")
class SeparableFilter(hl.Generator):
    width = hl.GeneratorParam(1920)
    height = hl.GeneratorParam(1080)
    channels = hl.GeneratorParam(3)
    radius = hl.GeneratorParam(3)  # 1 to 4: with 4 a column's sum just fits 16 bits

    input = hl.InputBuffer(hl.UInt(8), 3)
    output = hl.OutputBuffer(hl.UInt(8), 3)

    def generate(self) -> None:
        if not 1 <= self.radius <= 4:
            raise ValueError(f"separable_filter: radius is {self.radius}; it must be from 1 to 4")
        clamped = hl.BoundaryConditions.repeat_edge(self.input)

        columns = hl.Func("columns")
        column_sum = hl.u16(0)
        for k in range(2 * self.radius + 1):
            column_sum += hl.u16(comb(2 * self.radius, k)) * hl.u16(clamped[x, y + k - self.radius, c])
        columns[x, y, c] = column_sum

        total = hl.u32(1 << (4 * self.radius - 1))  # half of the divisor, to round to nearest
        for k in range(2 * self.radius + 1):
            total += hl.u32(comb(2 * self.radius, k)) * hl.u32(columns[x + k - self.radius, y, c])
        self.output[x, y, c] = hl.u8(total >> (4 * self.radius))

        self.input.set_estimates([(0, self.width), (0, self.height), (0, self.channels)])
        self.output.set_estimates([(0, self.width), (0, self.height), (0, self.channels)])

        if not self.using_autoscheduler():
            lanes = self.natural_vector_size(hl.UInt(16))
            self.output.parallel(y).vectorize(x, lanes)
            columns.compute_at(self.output, y).vectorize(x, lanes)


if __name__ == "__main__":
    hl.main()
