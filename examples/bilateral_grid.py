"""Edge-preserving smoothing of an 8-bit image with a bilateral grid (Chen, Paris, Durand 2007).

input is (x, y), uint8; output is (x, y), float32 in 0 to 255. Pixels are summed and counted in the cells of a
coarse grid (x / cell, y / cell, value >> range_bits); the grid is blurred with (1, 2, 1) along its three axes
and read back by trilinear interpolation. It holds integers, so its content does not depend on the schedule.
amount blends between the input (0) and the filtered image (1). Edges are repeated.
"""

from collections.abc import Callable

import halide as hl

x, y, z = hl.vars("x y z")


@hl.generator(name="bilateral_grid")
class BilateralGrid(hl.Generator):
    width = hl.GeneratorParam(1536)
    height = hl.GeneratorParam(1024)
    cell = hl.GeneratorParam(8)  # pixels on a side of a cell: 2 to 32
    range_bits = hl.GeneratorParam(4)  # a cell is 2 ** range_bits values deep: 1 to 7

    input = hl.InputBuffer(hl.UInt(8), 2)
    amount = hl.InputScalar(hl.Float(32))
    output = hl.OutputBuffer(hl.Float(32), 2)

    def generate(self) -> None:
        if not 2 <= self.cell <= 32:
            raise ValueError(f"bilateral_grid: cell is {self.cell}; it must be from 2 to 32")
        if not 1 <= self.range_bits <= 7:
            raise ValueError(f"bilateral_grid: range_bits is {self.range_bits}; it must be from 1 to 7")
        clamped = hl.BoundaryConditions.repeat_edge(self.input)

        # Each pixel goes to the nearest node of the grid: the sum of the values and their number.
        grid = hl.Func("grid")
        r = hl.RDom([(0, self.cell), (0, self.cell)], "r")
        pixel = hl.i32(clamped[x * self.cell + r.x - self.cell // 2, y * self.cell + r.y - self.cell // 2])
        node = hl.clamp((pixel + (1 << (self.range_bits - 1))) >> self.range_bits, 0, 256 >> self.range_bits)
        grid[x, y, z] = (hl.i32(0), hl.i32(0))
        grid[x, y, node] = (grid[x, y, node][0] + pixel, grid[x, y, node][1] + 1)

        blur_z = self.blur("blur_z", lambda k: grid[x, y, z + k])
        blur_x = self.blur("blur_x", lambda k: blur_z[x + k, y, z])
        blur_y = self.blur("blur_y", lambda k: blur_x[x, y + k, z])

        value = hl.i32(self.input[x, y])
        fractions = (
            hl.f32(x % self.cell) / float(self.cell),
            hl.f32(y % self.cell) / float(self.cell),
            hl.f32(value & ((1 << self.range_bits) - 1)) / float(1 << self.range_bits),
        )
        near = (x // self.cell, y // self.cell, value >> self.range_bits)
        total = self.trilinear(blur_y, 0, near, fractions)
        count = self.trilinear(blur_y, 1, near, fractions)
        self.output[x, y] = hl.lerp(hl.f32(value), total / count, self.amount)

        self.input.set_estimates([(0, self.width), (0, self.height)])
        self.amount.set_estimate(0.8)
        self.output.set_estimates([(0, self.width), (0, self.height)])

        if not self.using_autoscheduler():
            lanes = self.natural_vector_size(hl.Float(32))
            grid.compute_root().parallel(y)
            grid.update().parallel(y)
            for func in (blur_z, blur_x, blur_y):
                func.compute_root().parallel(y).vectorize(x, lanes)
            self.output.parallel(y, 8).vectorize(x, lanes)

    def blur(self, name: str, at: Callable[[int], hl.FuncRef]) -> hl.Func:
        """(1, 2, 1) along one axis; at(k) is the Tuple (sum, count) k nodes along it."""
        blurred = hl.Func(name)
        blurred[x, y, z] = tuple(at(-1)[i] + 2 * at(0)[i] + at(1)[i] for i in range(2))
        return blurred

    def trilinear(self, func: hl.Func, part: int, near: tuple[hl.Expr, ...], fractions: tuple[hl.Expr, ...]) -> hl.Expr:
        """Element part of func between the eight nodes at near and near + 1."""

        def along(axis: int, at: tuple[hl.Expr, ...]) -> hl.Expr:
            if axis == 3:
                return hl.f32(func[at][part])
            low, high = along(axis + 1, (*at, near[axis])), along(axis + 1, (*at, near[axis] + 1))
            return hl.lerp(low, high, fractions[axis])

        return along(0, ())


if __name__ == "__main__":
    hl.main()
