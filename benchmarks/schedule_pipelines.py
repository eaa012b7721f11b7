"""Small pipelines of different kinds, for the cost-model comparisons: stencils, reductions, scans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT = 1024, 768


@dataclass(frozen=True)
class SmallPipeline:
    """An unscheduled pipeline: its output Func, its ImageParams, and the output's estimated extents."""

    output: Any
    inputs: tuple[Any, ...]
    extents: tuple[int, ...]


def pipelines() -> dict[str, Callable[[], SmallPipeline]]:
    """Builders by name; each makes fresh Funcs with estimates and no schedule."""
    return {
        "blur": blur,
        "unsharp": unsharp,
        "harris": harris,
        "conv": conv,
        "equalize": equalize,
        "pyramid": pyramid,
    }


def _image(hl: Any, kind: Any, dimensions: int = 2) -> Any:
    image = hl.ImageParam(kind, dimensions, "image")
    for dimension, extent in zip(range(dimensions), (WIDTH, HEIGHT, 3), strict=False):
        image.dim(dimension).set_estimate(0, extent)
    return image


def _finish(output: Any, inputs: tuple[Any, ...], extents: tuple[int, ...]) -> SmallPipeline:
    output.set_estimates([(0, extent) for extent in extents])
    return SmallPipeline(output, inputs, extents)


def blur() -> SmallPipeline:
    """Two-stage 16-bit box blur."""
    import halide as hl

    x, y = hl.Var("x"), hl.Var("y")
    image = _image(hl, hl.UInt(16))
    clamped = hl.BoundaryConditions.repeat_edge(image, [(0, WIDTH), (0, HEIGHT)])
    across, output = hl.Func("across"), hl.Func("output")
    across[x, y] = (clamped[x - 1, y] + clamped[x, y] + clamped[x + 1, y]) / hl.u16(3)
    output[x, y] = (across[x, y - 1] + across[x, y] + across[x, y + 1]) / hl.u16(3)
    return _finish(output, (image,), (WIDTH, HEIGHT))


def unsharp() -> SmallPipeline:
    """Sharpening of a colour image by its luminance, in floats."""
    import halide as hl

    x, y, c = hl.Var("x"), hl.Var("y"), hl.Var("c")
    image = _image(hl, hl.Float(32), 3)
    clamped = hl.BoundaryConditions.repeat_edge(image, [(0, WIDTH), (0, HEIGHT), (0, 3)])
    gray, down, smooth = hl.Func("gray"), hl.Func("down"), hl.Func("smooth")
    ratio, output = hl.Func("ratio"), hl.Func("output")
    gray[x, y] = 0.299 * clamped[x, y, 0] + 0.587 * clamped[x, y, 1] + 0.114 * clamped[x, y, 2]
    taps = (0.4, 0.2, 0.1)
    down[x, y] = taps[0] * gray[x, y] + sum(taps[i] * (gray[x, y - i] + gray[x, y + i]) for i in (1, 2))
    smooth[x, y] = taps[0] * down[x, y] + sum(taps[i] * (down[x - i, y] + down[x + i, y]) for i in (1, 2))
    ratio[x, y] = (2 * gray[x, y] - smooth[x, y]) / hl.max(gray[x, y], 1e-6)
    output[x, y, c] = ratio[x, y] * clamped[x, y, c]
    return _finish(output, (image,), (WIDTH, HEIGHT, 3))


def harris() -> SmallPipeline:
    """Corner response: many stencils that share inputs."""
    import halide as hl

    x, y = hl.Var("x"), hl.Var("y")
    image = _image(hl, hl.Float(32))
    clamped = hl.BoundaryConditions.repeat_edge(image, [(0, WIDTH), (0, HEIGHT)])
    across, along = hl.Func("across"), hl.Func("along")
    weighted = ((-1, 1), (0, 2), (1, 1))
    across[x, y] = sum(w * (clamped[x + 1, y + i] - clamped[x - 1, y + i]) for i, w in weighted) / 12
    along[x, y] = sum(w * (clamped[x + i, y + 1] - clamped[x + i, y - 1]) for i, w in weighted) / 12
    sums = []
    for name, product in (
        ("xx", across[x, y] * across[x, y]),
        ("xy", across[x, y] * along[x, y]),
        ("yy", along[x, y] * along[x, y]),
    ):
        point, total = hl.Func(name), hl.Func("sum_" + name)
        point[x, y] = product
        total[x, y] = sum(point[x + i, y + j] for i in (-1, 0, 1) for j in (-1, 0, 1))
        sums.append(total[x, y])
    output = hl.Func("output")
    trace = sums[0] + sums[2]
    output[x, y] = sums[0] * sums[2] - sums[1] * sums[1] - 0.04 * trace * trace
    return _finish(output, (image,), (WIDTH, HEIGHT))


def conv() -> SmallPipeline:
    """A small convolution layer with bias and relu: one reduction."""
    import halide as hl

    channels, width, height = 16, 64, 48
    x, y, c = hl.Var("x"), hl.Var("y"), hl.Var("c")
    image = hl.ImageParam(hl.Float(32), 3, "image")
    kernel = hl.ImageParam(hl.Float(32), 4, "kernel")
    for dimension, extent in enumerate((channels, width + 2, height + 2)):
        image.dim(dimension).set_estimate(0, extent)
    for dimension, extent in enumerate((channels, 3, 3, channels)):
        kernel.dim(dimension).set_estimate(0, extent)
    taps = hl.RDom([(0, channels), (0, 3), (0, 3)])
    summed, output = hl.Func("summed"), hl.Func("output")
    summed[c, x, y] = 0.5
    summed[c, x, y] += kernel[c, taps.y, taps.z, taps.x] * image[taps.x, x + taps.y, y + taps.z]
    output[c, x, y] = hl.max(0.0, summed[c, x, y])
    return _finish(output, (image, kernel), (channels, width, height))


def equalize() -> SmallPipeline:
    """Histogram equalization: a scatter, a scan and a gather."""
    import halide as hl

    x, y, i = hl.Var("x"), hl.Var("y"), hl.Var("i")
    image = _image(hl, hl.UInt(8))
    histogram, cumulative, output = hl.Func("histogram"), hl.Func("cumulative"), hl.Func("output")
    pixels = hl.RDom([(0, WIDTH), (0, HEIGHT)])
    histogram[i] = hl.u32(0)
    histogram[hl.clamp(hl.i32(image[pixels.x, pixels.y]), 0, 255)] += hl.u32(1)
    scan = hl.RDom([(1, 255)])
    cumulative[i] = histogram[i]
    cumulative[scan.x] = cumulative[scan.x - 1] + histogram[scan.x]
    level = cumulative[hl.clamp(hl.i32(image[x, y]), 0, 255)]
    output[x, y] = hl.u8(hl.clamp(hl.f32(level) * (255.0 / (WIDTH * HEIGHT)), 0.0, 255.0))
    return _finish(output, (image,), (WIDTH, HEIGHT))


def pyramid() -> SmallPipeline:
    """Three levels down and up again, 8-bit in and out with 16-bit sums."""
    import halide as hl

    x, y = hl.Var("x"), hl.Var("y")
    image = _image(hl, hl.UInt(8))
    clamped = hl.BoundaryConditions.repeat_edge(image, [(0, WIDTH), (0, HEIGHT)])
    level = hl.Func("level_0")
    level[x, y] = hl.u16(clamped[x, y])
    levels = [level]
    for depth in (1, 2, 3):
        smaller, above = hl.Func(f"level_{depth}"), levels[-1]
        smaller[x, y] = sum(above[2 * x + i, 2 * y + j] for i in (0, 1) for j in (0, 1)) / hl.u16(4)
        levels.append(smaller)
    merged = levels[-1]
    for depth in (2, 1, 0):
        larger, below = hl.Func(f"merged_{depth}"), merged
        larger[x, y] = (levels[depth][x, y] + below[x / 2, y / 2] + below[(x + 1) / 2, y / 2]) / hl.u16(3)
        merged = larger
    output = hl.Func("output")
    output[x, y] = hl.u8(hl.min(merged[x, y], 255))
    return _finish(output, (image,), (WIDTH, HEIGHT))
