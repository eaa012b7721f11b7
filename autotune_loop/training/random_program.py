"""Random programs to learn from: a generator like any other, whose every seed is another pipeline.

In the spirit of Adams et al. 2019 (Learning to Optimize Halide with Tree Search and Random Programs, section 5). Stages
are drawn one after the other from what image pipelines are made of, mostly on top of the newest, so that programs are
deep: arithmetic on one or two earlier stages, casts, transcendental functions, stencils, convolutions over channels,
windows, look-ups in tables and by data, boundaries, down- and upsampling, pyramids, histograms with their running sums,
recursive filters, products with a matrix.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import halide as hl

x, y, c = hl.Var("x"), hl.Var("y"), hl.Var("c")
_INTEGERS = [hl.UInt(8), hl.UInt(16), hl.Int(32)]
_SMALLEST_SCALE = 3
# Sums of 32-bit integers must not overflow: what they are then is undefined.
_LARGEST = 1 << 12
_BINS = 256
_MATRIX_ROWS = 32


@dataclass(frozen=True)
class Stage:
    """A Func of x, y, c; `scale` halvings of the output's size; its values' type."""

    func: hl.Func
    scale: int
    type: hl.Type


@hl.generator(name="random_program")
class RandomProgram(hl.Generator):
    seed = hl.GeneratorParam(0)
    stages = hl.GeneratorParam(8)
    width = hl.GeneratorParam(1024)
    height = hl.GeneratorParam(768)
    channels = hl.GeneratorParam(3)
    # For a DSP, whose vectors have no floating point; its output.type is then int32.
    integers_only = hl.GeneratorParam(False)

    input = hl.InputBuffer(hl.UInt(8), 3)
    output = hl.OutputBuffer(None, 3)

    def generate(g) -> None:
        size = (int(g.width), int(g.height), int(g.channels))
        first = hl.Func("source")
        first[x, y, c] = hl.BoundaryConditions.repeat_edge(g.input)[x, y, c]
        types = _INTEGERS if g.integers_only else [*_INTEGERS, hl.Float(32)]
        program = _Program(random.Random(int(g.seed)), size, types, Stage(first, 0, hl.UInt(8)))
        while program.count < int(g.stages):
            program.grow()
        while program.newest.scale:
            program.up()
        g.output[x, y, c] = hl.cast(g.output.type(), program.newest.func[x, y, c]) + 1
        if int(g.seed) % 2:  # as many image pipelines have it
            g.output.output_buffer().dim(2).set_bounds(0, int(g.channels))
        for buffer in (g.input, g.output):
            buffer.set_estimates([(0, extent) for extent in size])
        if not g.using_autoscheduler():
            for func in program.funcs:
                func.compute_root()


class _Program:
    """A program as far as it is drawn: each method but `grow` adds one stage, or a few that belong together."""

    def __init__(self, source: random.Random, size: tuple[int, int, int], types: list[hl.Type], first: Stage) -> None:
        self._source, self._size, self._types = source, size, types
        self._stages = [first]
        self.funcs = [first.func]
        self.count = 0

    @property
    def newest(self) -> Stage:
        return self._stages[-1]

    def grow(self) -> None:
        kinds: list[Callable[[], None]] = [self.arithmetic, self.arithmetic, self.cast, self.table]
        kinds += [self.stencil, self.stencil, self.stencil, self.window, self.convolution, self.gather, self.border]
        kinds += [self.histogram, self.product]
        if self._has_floats():
            kinds += [self.curve, self.recursion]
        if self._older():
            kinds += [self.join] * 4
        if self.newest.scale < _SMALLEST_SCALE:
            kinds += [self.down, self.pyramid]
        if self.newest.scale:
            kinds += [self.up, self.up]
        self._source.choice(kinds)()

    def arithmetic(self) -> None:
        here, number = self._here(), self._source.randint(2, 9)
        values = [here * number + 1, hl.select(here > number, here - number, here), hl.max(here, number), here / number]
        self._add("arithmetic", self._source.choice(values), self.newest.type)

    def curve(self) -> None:
        size = hl.abs(hl.cast(hl.Float(32), self._here()))
        values = [
            hl.sqrt(size),
            hl.log(size + 1),
            hl.exp(size * hl.f32(-0.01)),
            hl.sin(size * hl.f32(0.1)),
            hl.pow(size + 1, hl.f32(0.45)),
        ]
        self._add("curve", self._source.choice(values), hl.Float(32))

    def cast(self) -> None:
        wanted = self._source.choice([kind for kind in self._types if kind != self.newest.type])
        here = self._here()
        if self.newest.type == hl.Float(32):
            # What a number becomes that the type cannot hold depends on how it is computed.
            most = min(_LARGEST, 2 ** wanted.bits() - 1)
            here = hl.cast(hl.Int(32), hl.clamp(here, 0 if wanted.is_uint() else -most, most))
        self._add("cast", here, wanted)

    def join(self) -> None:
        here = self._here()
        there = self._bounded(hl.cast(self.newest.type, self._source.choice(self._older()).func[x, y, c]))
        values = [
            here + there,
            hl.max(here, there),
            hl.cast(self.newest.type, hl.absd(here, there)),
            (here + there) / 2,
        ]
        self._add("join", self._source.choice(values), self.newest.type)

    def stencil(self) -> None:
        shape, apart = self._source.choice(["x", "y", "xy"]), self._source.choice([1, 1, 1, 2, 4])
        radius = self._source.randint(1, 1 if shape == "xy" else 3)
        across = range(-radius, radius + 1) if shape != "y" else (0,)
        along = range(-radius, radius + 1) if shape != "x" else (0,)
        places = [(apart * i, apart * j) for i in across for j in along]
        weights = [self._source.randint(1, 4) for _ in places]
        func, wide = self.newest.func, self._wide()
        taken = [self._bounded(func[x + i, y + j, c]) for i, j in places]
        total = _sum([hl.cast(wide, value) * weight for value, weight in zip(taken, weights, strict=True)])
        self._add(f"stencil_{shape}", total / sum(weights), self.newest.type)

    def window(self) -> None:
        across, along = self._source.choice([(4, 1), (1, 4), (3, 3), (8, 1)])
        reach = hl.RDom([(0, across), (0, along)])
        place = hl.cast(self._wide(), self._bounded(self.newest.func[x + reach.x, y + reach.y, c]))
        if self._source.random() < 0.5:
            self._reduce("window_sum", lambda func: func[x, y, c] + place)
        else:
            self._reduce("window_max", lambda func: hl.max(func[x, y, c], place))

    def convolution(self) -> None:
        """Over a window and all channels, as a neural network's layers are."""
        radius = self._source.choice([0, 1, 1])
        weights, column = self._table(self._wide()), self._source.randint(1, 5)
        window = [(-radius, 2 * radius + 1)] * 2
        reach = hl.RDom([(0, self._size[2]), *window])
        place = hl.cast(self._wide(), self._bounded(self.newest.func[x + reach.y, y + reach.z, reach.x]))
        weight = weights[reach.x + column * (reach.y + radius) + 3 * (reach.z + radius) + c]
        self._reduce("convolution", lambda func: func[x, y, c] + place * weight)

    def table(self) -> None:
        place = hl.clamp(self._whole(self.newest.func[x, y, c]), 0, _BINS - 1)
        self._add("look_up", self._table(self.newest.type)[place], self.newest.type)

    def gather(self) -> None:
        """From a place near by that the data name."""
        step = self._whole(self.newest.func[x, y, c]) % 5 - 2
        across = self._source.random() < 0.5
        place = self.newest.func[x + step, y, c] if across else self.newest.func[x, y + step, c]
        self._add("gather", place, self.newest.type)

    def border(self) -> None:
        width, height = self._extents()
        inside = (hl.clamp(x, 0, width - 1), hl.clamp(y, 0, height - 1))
        if self._source.random() < 0.5:
            self._add("edge", self.newest.func[inside[0], inside[1], c], self.newest.type)
            return
        is_inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
        value = hl.select(is_inside, self.newest.func[inside[0], inside[1], c], hl.cast(self.newest.type, 0))
        self._add("exterior", value, self.newest.type)

    def down(self) -> None:
        func = self.newest.func
        taken = [self._bounded(func[2 * x + i, 2 * y + j, c]) for i in (0, 1) for j in (0, 1)]
        total = _sum([hl.cast(self._wide(), value) for value in taken])
        self._add("down", total / 4, self.newest.type, self.newest.scale + 1)

    def up(self) -> None:
        func, wide = self.newest.func, self._wide()
        value = func[x / 2, y / 2, c]
        if self._source.random() < 0.5:
            near = self._bounded(func[x / 2 + x % 2, y / 2 + y % 2, c])
            value = (3 * hl.cast(wide, self._bounded(value)) + hl.cast(wide, near)) / 4
        self._add("up", value, self.newest.type, self.newest.scale - 1)

    def pyramid(self) -> None:
        """Down by one or two levels, something there, and up again, with each level's own picture added."""
        fine = [self.newest]
        for _ in range(min(self._source.choice([1, 2]), _SMALLEST_SCALE - self.newest.scale)):
            self.down()
            fine.append(self.newest)
        self.arithmetic()
        for level in reversed(fine[:-1]):
            self.up()
            here, there = self._here(), self._bounded(hl.cast(self.newest.type, level.func[x, y, c]))
            self._add("collapse", (here + there) / 2, self.newest.type)

    def histogram(self) -> None:
        """Of the whole picture; its running sum is what each pixel becomes."""
        width, height = self._extents()
        area, bins = hl.RDom([(0, width), (0, height)]), hl.RDom([(1, _BINS - 1)])
        bright = self.newest.func
        counts, sums = self._func("histogram"), self._func("running_sum")

        def bin_of(*place: object) -> hl.Expr:
            return hl.clamp(self._whole(bright[place]), 0, _BINS - 1)

        counts[x] = hl.cast(hl.Int(32), 0)
        counts[bin_of(area.x, area.y, 0)] += 1
        sums[x] = counts[x]
        sums[bins.x] += sums[bins.x - 1]
        equal = sums[bin_of(x, y, c)] / max(1, width * height // _BINS)
        self._add("equalized", equal, self._source.choice(self._types))

    def recursion(self) -> None:
        """A recursive filter along rows or columns, there and sometimes back."""
        width, height = self._extents()
        is_across = self._source.random() < 0.5
        extent = width if is_across else height
        func = self._func("recursion")
        func[x, y, c] = hl.cast(hl.Float(32), self._here())
        along = hl.RDom([(1, extent - 1)])
        places = [(along.x, along.x - 1), (extent - 1 - along.x, extent - along.x)]
        for now, before in places[: self._source.choice([1, 2])]:
            if is_across:
                func[now, y, c] = 0.25 * func[now, y, c] + 0.75 * func[before, y, c]
            else:
                func[x, now, c] = 0.25 * func[x, now, c] + 0.75 * func[x, before, c]
        self._keep(func, self.newest.scale, hl.Float(32))

    def product(self) -> None:
        """Of each row's first pixels with a matrix."""
        weights, reach = self._table(self._wide()), hl.RDom([(0, _MATRIX_ROWS)])
        place = hl.cast(self._wide(), self._bounded(self.newest.func[reach.x, y, c]))
        self._reduce("product", lambda func: func[x, y, c] + place * weights[(x + 7 * reach.x) % _BINS])

    def _here(self) -> hl.Expr:
        return self._bounded(self.newest.func[x, y, c])

    def _bounded(self, value: hl.Expr) -> hl.Expr:
        """A value of the newest stage that can be added up."""
        return hl.clamp(value, -_LARGEST, _LARGEST) if self.newest.type == hl.Int(32) else value

    def _whole(self, value: hl.Expr) -> hl.Expr:
        """A value of the newest stage as an integer; of a number that is too large for one it would be undefined."""
        is_float = self.newest.type == hl.Float(32)
        return hl.cast(hl.Int(32), hl.clamp(value, -_LARGEST, _LARGEST) if is_float else value)

    def _has_floats(self) -> bool:
        return hl.Float(32) in self._types

    def _wide(self) -> hl.Type:
        return hl.Float(32) if self.newest.type == hl.Float(32) else hl.Int(32)

    def _extents(self) -> tuple[int, int]:
        """The newest stage's width and height."""
        return max(1, self._size[0] >> self.newest.scale), max(1, self._size[1] >> self.newest.scale)

    def _older(self) -> list[Stage]:
        return [stage for stage in self._stages[-7:-1] if stage.scale == self.newest.scale]

    def _table(self, kind: hl.Type) -> hl.Func:
        table = self._func("table")
        table[x] = hl.cast(kind, x * self._source.randint(1, 7) % 13)
        return table

    def _reduce(self, name: str, update: Callable[[hl.Func], hl.Expr]) -> None:
        func, wide = self._func(name), self._wide()
        func[x, y, c] = hl.cast(wide, 0)
        func[x, y, c] = update(func)
        self._keep(func, self.newest.scale, wide)

    def _add(self, name: str, value: hl.Expr, kind: hl.Type, scale: int | None = None) -> None:
        func = self._func(name)
        func[x, y, c] = hl.cast(kind, value)
        self._keep(func, self.newest.scale if scale is None else scale, kind)

    def _func(self, name: str) -> hl.Func:
        self.funcs.append(hl.Func(f"{name}_{len(self.funcs)}"))
        return self.funcs[-1]

    def _keep(self, func: hl.Func, scale: int, kind: hl.Type) -> None:
        self._stages.append(Stage(func, scale, kind))
        self.count += 1


def _sum(values: list[hl.Expr]) -> hl.Expr:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


if __name__ == "__main__":
    hl.main()
