"""Random programs to learn from: a generator like any other, whose every seed is another pipeline.

In the spirit of Adams et al. 2019 (Learning to Optimize Halide with Tree Search and Random Programs, section 5). Stages
are drawn one after the other from what image pipelines are made of, mostly on top of the newest, so that programs are
deep: arithmetic on one or two earlier stages, casts, transcendental functions, stencils, convolutions over channels,
windows, look-ups in tables and by data, boundaries, down- and upsampling, pyramids, histograms with their running sums,
recursive filters, products with a matrix. Some are whole parts of known pipelines: chains of arithmetic, separable
filters, sharpening, variances, corners' responses, mosaics, grids that are read by interpolation, block matching, wide
filters of maxima.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import halide as hl
from program_parts import dilated, matched
from program_values import BINS, bin_of, bounded, c, interpolated, largest, sum_of, whole

x, y = hl.Var("x"), hl.Var("y")
_TYPES = [hl.UInt(8), hl.UInt(16), hl.Int(32), hl.Float(32)]
# As in pipelines that people write for HVX, which adds up in 16 bits; LLVM takes ten times as long for vectors of 32.
_DSP_TYPES = [hl.UInt(8), hl.UInt(16), hl.Int(16)]
_SMALLEST_SCALE = 3
# With how often the picture is halved: many channels are a neural network's.
_CHANNELS = [(1, 0), (1, 0), (3, 0), (3, 0), (3, 0), (4, 0), (16, 2)]
_MATRIX_ROWS = 32
# Of a grid: pixels on a side of a cell, and values that it holds.
_CELL, _RANGE = 8, 32
# What can be squared and added up in so many bits.
_LARGEST_SLOPES = {32: 1 << 10, 16: 1 << 5}


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
    # For a DSP, whose vectors have neither floating point nor 64 bits; its output.type is then uint8.
    for_dsp = hl.GeneratorParam(False)

    input = hl.InputBuffer(hl.UInt(8), 3)
    output = hl.OutputBuffer(None, 3)

    def generate(g) -> None:
        source = random.Random(int(g.seed))
        channels, halvings = source.choice(_CHANNELS)
        size = (max(1, int(g.width) >> halvings), max(1, int(g.height) >> halvings), channels)
        first = hl.Func("source")
        first[x, y, c] = hl.BoundaryConditions.repeat_edge(g.input)[x, y, c]
        types = _DSP_TYPES if g.for_dsp else _TYPES
        program = _Program(source, size, types, Stage(first, 0, hl.UInt(8)))
        if source.random() < 0.5 and not g.for_dsp:
            program.become_float()
        while program.count < int(g.stages):
            program.grow()
        while program.newest.scale:
            program.up()
        g.output[x, y, c] = hl.cast(g.output.type(), program.newest.func[x, y, c]) + 1
        if source.random() < 0.5:  # as many image pipelines have it
            g.output.output_buffer().dim(2).set_bounds(0, channels)
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
        kinds += [self.histogram, self.product, self.chain, self.separable, self.sharpen, self.variance, self.corner]
        kinds += [self.mosaic, self.grid]
        if self._is_for_dsp():
            # HVX reads these value by value, and LLVM takes a minute for that in vectors of 128.
            left_out = (self.gather, self.product, self.mosaic, self.grid)
            kinds = [kind for kind in kinds if kind not in left_out]
        else:
            kinds += [self.curve, self.recursion, self.match, self.dilate]
        if self._older():
            kinds += [self.join] * 4
        if self.newest.scale < _SMALLEST_SCALE:
            kinds += [self.down, self.pyramid]
        if self.newest.scale:
            kinds += [self.up, self.up]
        self._source.choice(kinds)()

    def become_float(self) -> None:
        """As many pipelines begin; what follows is in floats until it is cast."""
        self._add("to_float", self._here(), hl.Float(32))

    def arithmetic(self) -> None:
        here, number = self._here(), self._source.randint(2, 9)
        values = [
            here * number + 1,
            hl.select(here > number, here - number, here),
            hl.max(here, number),
            self._over(here, number),
        ]
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
            most = largest(wanted)
            here = hl.cast(hl.Int(32), hl.clamp(here, 0 if wanted.is_uint() else -most, most))
        self._add("cast", here, wanted)

    def join(self) -> None:
        here = self._here()
        there = bounded(hl.cast(self.newest.type, self._source.choice(self._older()).func[x, y, c]))
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
        self._add(f"stencil_{shape}", self._weighted(places, weights), self.newest.type)

    def window(self) -> None:
        across, along = self._source.choice([(4, 1), (1, 4), (3, 3), (8, 1)])
        reach = hl.RDom([(0, across), (0, along)])
        place = hl.cast(self._wide(), bounded(self.newest.func[x + reach.x, y + reach.y, c]))
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
        place = hl.cast(self._wide(), bounded(self.newest.func[x + reach.y, y + reach.z, reach.x]))
        weight = weights[reach.x + column * (reach.y + radius) + 3 * (reach.z + radius) + c]
        self._reduce("convolution", lambda func: func[x, y, c] + place * weight)

    def table(self) -> None:
        self._add("look_up", self._table(self.newest.type)[bin_of(self.newest.func[x, y, c])], self.newest.type)

    def gather(self) -> None:
        """From a place near by that the data name."""
        step = whole(self.newest.func[x, y, c]) % 4 - 2
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
        taken = [bounded(func[2 * x + i, 2 * y + j, c]) for i in (0, 1) for j in (0, 1)]
        total = sum_of([hl.cast(self._wide(), value) for value in taken])
        self._add("down", total / 4, self.newest.type, self.newest.scale + 1)

    def up(self) -> None:
        func, wide = self.newest.func, self._wide()
        value = func[x / 2, y / 2, c]
        if self._source.random() < 0.5:
            near = bounded(func[x / 2 + x % 2, y / 2 + y % 2, c])
            value = (3 * hl.cast(wide, bounded(value)) + hl.cast(wide, near)) / 4
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
            here, there = self._here(), bounded(hl.cast(self.newest.type, level.func[x, y, c]))
            self._add("collapse", (here + there) / 2, self.newest.type)

    def histogram(self) -> None:
        """Of the whole picture; its running sum is what each pixel becomes."""
        width, height = self._extents()
        area, bins = hl.RDom([(0, width), (0, height)]), hl.RDom([(1, BINS - 1)])
        bright = self.newest.func
        counts, sums = self._func("histogram"), self._func("running_sum")
        counts[x] = hl.cast(hl.Int(32), 0)
        counts[bin_of(bright[area.x, area.y, 0])] += 1
        sums[x] = counts[x]
        sums[bins.x] += sums[bins.x - 1]
        equal = self._over(sums[bin_of(bright[x, y, c])], max(1, width * height // BINS))
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
        place = hl.cast(self._wide(), bounded(self.newest.func[reach.x, y, c]))
        self._reduce("product", lambda func: func[x, y, c] + place * weights[(x + 7 * reach.x) % BINS])

    def chain(self) -> None:
        """Several steps on each pixel, which a good schedule inlines."""
        for _ in range(self._source.randint(3, 6)):
            steps = [self.arithmetic, self.cast] if self._is_for_dsp() else [self.arithmetic, self.cast, self.curve]
            self._source.choice(steps)()

    def separable(self) -> None:
        """The same sum along rows and then along columns."""
        radius = self._source.randint(1, 4)
        weights = [1 + radius - abs(step) for step in range(-radius, radius + 1)]
        for across, along in self._source.choice([[(1, 0), (0, 1)], [(0, 1), (1, 0)]]):
            places = [(step * across, step * along) for step in range(-radius, radius + 1)]
            self._add("separable", self._weighted(places, weights), self.newest.type)

    def sharpen(self) -> None:
        """More of what differs from a blurred picture."""
        sharp = self.newest
        self.separable()
        centre, blurred = (hl.cast(self._wide(), bounded(each.func[x, y, c])) for each in (sharp, self.newest))
        value = centre + (centre - blurred) / 2
        if sharp.type != hl.Float(32):
            value = hl.clamp(value, 0, largest(sharp.type))
        self._add("sharpened", value, sharp.type)

    def variance(self) -> None:
        """Of each pixel's surroundings: means of values and of squares, each from the same picture."""
        source, wide = self.newest, self._wide()
        largest_slope = _LARGEST_SLOPES[wide.bits()]
        slope = hl.clamp(hl.cast(wide, self._here()), -largest_slope, largest_slope)
        square = self._add("square", slope * slope, wide)
        means = [self._box(of, wide) for of in (source, square)]
        mean, of_squares = (each.func[x, y, c] for each in means)
        mean = hl.clamp(mean, -largest_slope, largest_slope)
        self._add("variance", hl.max(of_squares - mean * mean, 0), wide)

    def corner(self) -> None:
        """The response of a corner detector (Harris and Stephens 1988): slopes, their products, sums, one number."""
        source, wide = self.newest, self._wide()
        largest_slope, slopes = _LARGEST_SLOPES[wide.bits()], []
        for name, places in (("slope_x", [(-1, 0), (1, 0)]), ("slope_y", [(0, -1), (0, 1)])):
            low, high = (hl.cast(wide, bounded(source.func[x + i, y + j, c])) for i, j in places)
            slopes.append(self._add(name, hl.clamp(high - low, -largest_slope, largest_slope), wide))
        pairs = [(slopes[0], slopes[0]), (slopes[1], slopes[1]), (slopes[0], slopes[1])]
        products = [self._add("slopes", one.func[x, y, c] * other.func[x, y, c], wide) for one, other in pairs]
        across, along, both = (self._box(each, wide).func[x, y, c] for each in products)
        if wide == hl.Float(32):
            response = across * along - both * both - hl.f32(0.04) * (across + along) * (across + along)
        else:
            response = hl.min(across, along) - hl.cast(wide, hl.abs(both))
        self._add("response", response, wide)

    def mosaic(self) -> None:
        """The four kinds of pixel of a sensor, each a picture of half the size, put together again with neighbours."""
        source, kind = self.newest, self.newest.type
        places = [(i, j) for j in (0, 1) for i in (0, 1)]
        planes = [self._add("plane", source.func[2 * x + i, 2 * y + j, c], kind, source.scale + 1) for i, j in places]
        here = []
        for plane, (i, j) in zip(planes, places, strict=True):
            near, far = (bounded(plane.func[x / 2 + k * i, y / 2 + k * j, c]) for k in (0, 1))
            here.append(hl.cast(kind, (hl.cast(self._wide(), near) + hl.cast(self._wide(), far)) / 2))
        rows = [hl.select(x % 2 == 0, here[2 * j], here[2 * j + 1]) for j in (0, 1)]
        self._add("mosaic", hl.select(y % 2 == 0, *rows), kind, source.scale)

    def grid(self) -> None:
        """A bilateral grid (Chen, Paris and Durand 2007): values by place and brightness, blurred, read back."""
        source = self.newest
        z, area = hl.Var("z"), hl.RDom([(0, _CELL), (0, _CELL)])
        value = bin_of(source.func[_CELL * x + area.x, _CELL * y + area.y, c])
        grid = self._func("grid")
        grid[x, y, z, c] = hl.cast(hl.Int(32), 0)
        grid[x, y, value / _RANGE, c] += value
        for steps in ((0, 0, 1), (1, 0, 0), (0, 1, 0)):
            blurred = self._func("grid_blurred")
            low, high = (grid[x + k * steps[0], y + k * steps[1], z + k * steps[2], c] for k in (-1, 1))
            blurred[x, y, z, c] = low + 2 * grid[x, y, z, c] + high
            grid = blurred
        read = interpolated(grid, [(x, _CELL), (y, _CELL), (bin_of(source.func[x, y, c]), _RANGE)])
        self._add("sliced", read / hl.f32(64 * _CELL * _CELL), hl.Float(32), source.scale)

    def match(self) -> None:
        radius, wide = self._source.choice([1, 2]), self._wide()
        self._add("matched", matched(self._func, self.newest.func, wide, radius), wide)

    def dilate(self) -> None:
        _, height = self._extents()
        value = dilated(self._func, self.newest.func, self.newest.type, height, self._source.choice([2, 3]))
        self._add("dilated", value, self.newest.type)

    def _box(self, stage: Stage, kind: hl.Type) -> Stage:
        """The mean around each pixel, of values that can be added up."""
        taken = [hl.cast(kind, stage.func[x + i, y + j, c]) for i in (-1, 0, 1) for j in (-1, 0, 1)]
        return self._add("box", self._over(sum_of(taken), 9), kind, stage.scale)

    def _weighted(self, places: list[tuple[int, int]], weights: list[int]) -> hl.Expr:
        """The mean of the newest stage's values at some places."""
        func, wide = self.newest.func, self._wide()
        taken = [hl.cast(wide, bounded(func[x + i, y + j, c])) for i, j in places]
        total = sum_of([value * weight for value, weight in zip(taken, weights, strict=True)])
        return self._over(total, sum(weights))

    def _here(self) -> hl.Expr:
        return bounded(self.newest.func[x, y, c])

    def _over(self, value: hl.Expr, number: int) -> hl.Expr:
        """A value's quotient; for a DSP by a power of two, since others take vectors of 64 bits, which it has not."""
        return value / (1 << (number - 1).bit_length() if self._is_for_dsp() else number)

    def _is_for_dsp(self) -> bool:
        return hl.Float(32) not in self._types

    def _wide(self) -> hl.Type:
        """What the newest stage's values are added up in."""
        if self._is_for_dsp():
            return hl.Int(16)
        return hl.Float(32) if self.newest.type == hl.Float(32) else hl.Int(32)

    def _extents(self) -> tuple[int, int]:
        """The newest stage's width and height."""
        return max(1, self._size[0] >> self.newest.scale), max(1, self._size[1] >> self.newest.scale)

    def _older(self) -> list[Stage]:
        return [stage for stage in self._stages[-7:-1] if stage.scale == self.newest.scale]

    def _table(self, kind: hl.Type) -> hl.Func:
        table = self._func("table")
        table[x] = hl.cast(kind, x * self._source.randint(1, 7) % 16)
        return table

    def _reduce(self, name: str, update: Callable[[hl.Func], hl.Expr]) -> None:
        func, wide = self._func(name), self._wide()
        func[x, y, c] = hl.cast(wide, 0)
        func[x, y, c] = update(func)
        self._keep(func, self.newest.scale, wide)

    def _add(self, name: str, value: hl.Expr, kind: hl.Type, scale: int | None = None) -> Stage:
        func = self._func(name)
        func[x, y, c] = hl.cast(kind, value)
        return self._keep(func, self.newest.scale if scale is None else scale, kind)

    def _func(self, name: str) -> hl.Func:
        self.funcs.append(hl.Func(f"{name}_{len(self.funcs)}"))
        return self.funcs[-1]

    def _keep(self, func: hl.Func, scale: int, kind: hl.Type) -> Stage:
        self._stages.append(Stage(func, scale, kind))
        self.count += 1
        return self.newest


if __name__ == "__main__":
    hl.main()
