"""Small Halide kernels that the tests of the runner link and run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import halide as hl

from halide_autotune.targets.build.executable import KernelObject

Arguments = list[object]
Kernel = tuple[hl.Pipeline, Arguments]

x, y, c, xo, yo, xi, yi = (hl.Var(name) for name in ("x", "y", "c", "xo", "yo", "xi", "yi"))

# Every element type, in the order of the arguments of `types`.
TYPES = {
    "bool": hl.Bool(),
    "int8": hl.Int(8),
    "uint8": hl.UInt(8),
    "int16": hl.Int(16),
    "uint16": hl.UInt(16),
    "int32": hl.Int(32),
    "uint32": hl.UInt(32),
    "int64": hl.Int(64),
    "uint64": hl.UInt(64),
    "float16": hl.Float(16),
    "float32": hl.Float(32),
    "float64": hl.Float(64),
}
TYPES_MINS, TYPES_EXTENTS = (-3, 5), (21, 4)


def _blur(added: int = 0) -> tuple[hl.ImageParam, hl.Func, hl.Func]:
    """Three columns by three rows, without a border: the input is two larger than the output."""
    image = hl.ImageParam(hl.UInt(8), 2, "image")
    rows, blurred = hl.Func("rows"), hl.Func("blurred")
    wide = hl.Func("wide")
    wide[x, y] = hl.u16(image[x, y])
    rows[x, y] = wide[x - 1, y] + wide[x, y] + wide[x + 1, y]
    blurred[x, y] = rows[x, y - 1] + rows[x, y] + rows[x, y + 1] + hl.u16(added)
    image.set_estimates([(0, 100), (0, 60)])
    blurred.set_estimates([(0, 100), (0, 60)])
    return image, rows, blurred


def _blur_plain() -> Kernel:
    image, _, blurred = _blur()
    return hl.Pipeline(blurred), [image]


def _blur_tiled() -> Kernel:
    image, rows, blurred = _blur()
    blurred.tile(x, y, xo, yo, xi, yi, 32, 8).vectorize(xi, 8).parallel(yo)
    # Rounds up the width of the rows, so that more of the input is read than the output needs.
    rows.compute_at(blurred, xo).vectorize(x, 16, hl.TailStrategy.RoundUp)
    return hl.Pipeline(blurred), [image]


def _blur_rounded_up() -> Kernel:
    """Writes whole vectors: the output has to be wider than its estimate."""
    image, _, blurred = _blur()
    blurred.vectorize(x, 16, hl.TailStrategy.RoundUp)
    return hl.Pipeline(blurred), [image]


def _blur_in_strips(wrong: bool = False, strip: int = 8, alignment: int = 1) -> Kernel:
    """Computes whole strips of rows only, as hand-written schedules do, and so less than is asked for."""
    image, _, blurred = _blur(added=1 if wrong else 0)
    blurred.bound(y, 0, blurred.output_buffer().dim(1).extent() // strip * strip)
    blurred.align_bounds(x, alignment)
    return hl.Pipeline(blurred), [image]


def _blur_wrong() -> Kernel:
    image, _, blurred = _blur(added=1)
    return hl.Pipeline(blurred), [image]


def _blur_wrong_corner() -> Kernel:
    image, _, blurred = _blur()
    corner = hl.Func("corner")
    corner[x, y] = blurred[x, y] + hl.select((x == 99) & (y == 59), hl.u16(3), hl.u16(0))
    corner.set_estimates([(0, 100), (0, 60)])
    # The output keeps the name that the reference has.
    renamed = hl.Func("blurred")
    renamed[x, y] = corner[x, y]
    renamed.set_estimates([(0, 100), (0, 60)])
    return hl.Pipeline(renamed), [image]


def _scaled(factor: float, poison: bool = False) -> Kernel:
    image = hl.ImageParam(hl.Float(32), 2, "image")
    scaled = hl.Func("scaled")
    value = image[x, y] * hl.f32(factor)
    if poison:
        value = hl.select(x == 3, hl.f32(float("nan")), x == 4, hl.f32(float("inf")), value)
    scaled[x, y] = value
    for shaped in (image, scaled):
        shaped.set_estimates([(0, 40), (0, 10)])
    return hl.Pipeline(scaled), [image]


def _interleaved(pixel_stride: int, width: int = 30) -> Kernel:
    image = hl.ImageParam(hl.UInt(8), 3, "image")
    image.dim(0).set_stride(pixel_stride)
    image.dim(2).set_stride(1).set_bounds(0, 3)
    brighter = hl.Func("brighter")
    brighter[x, y, c] = image[x, y, c] + hl.u8(1)
    brighter.output_buffer().dim(0).set_stride(3)
    brighter.output_buffer().dim(2).set_stride(1).set_bounds(0, 3)
    for shaped in (image, brighter):
        shaped.set_estimates([(0, width), (0, 20), (0, 3)])
    return hl.Pipeline(brighter), [image]


def _scalar(name: str, element_type: hl.Type, estimate: bool | int | float) -> hl.Param:
    parameter = hl.Param(element_type, name)
    parameter.set_estimate(estimate)
    return parameter


def _scalars() -> Kernel:
    flag, tiny = _scalar("flag", hl.Bool(), True), _scalar("tiny", hl.Int(8), -5)
    small, large = _scalar("small", hl.UInt(16), 60000), _scalar("large", hl.Int(64), -(2**40))
    half_way, precise = _scalar("half_way", hl.Float(32), 0.5), _scalar("precise", hl.Float(64), 0.25)
    total = hl.Func("total")
    sums = [hl.f64(tiny), hl.f64(small), hl.f64(large), hl.f64(half_way), precise]
    total[x] = hl.select(flag, sum(sums, hl.f64(0)), hl.f64(0))
    total.set_estimates([(0, 4)])
    return hl.Pipeline(total), [flag, tiny, small, large, half_way, precise]


def _two_outputs() -> Kernel:
    image = hl.ImageParam(hl.UInt(16), 2, "image")
    low, column = hl.Func("low"), hl.Func("column")
    low[x, y] = hl.u8(image[x, y] & 255)
    reduced = hl.RDom([(0, 16)], "reduced")
    column[y] = hl.u32(0)
    column[y] += hl.u32(image[reduced, y])
    image.set_estimates([(0, 16), (0, 8)])
    low.set_estimates([(0, 16), (0, 8)])
    column.set_estimates([(0, 8)])
    return hl.Pipeline([low, column]), [image]


def _types() -> Kernel:
    inputs: Arguments = []
    outputs = []
    for name, element_type in TYPES.items():
        image, copy = hl.ImageParam(element_type, 2, f"in_{name}"), hl.Func(f"out_{name}")
        copy[x, y] = image[x, y]
        for shaped in (image, copy):
            shaped.set_estimates(list(zip(TYPES_MINS, TYPES_EXTENTS, strict=True)))
        inputs.append(image)
        outputs.append(copy)
    return hl.Pipeline(outputs), inputs


def _around_zero(added: int) -> Kernel:
    image, shifted = hl.ImageParam(hl.Int(16), 2, "image"), hl.Func("shifted")
    shifted[x, y] = image[x, y] * hl.i16(0) + hl.cast(hl.Int(16), x) - hl.i16(20 - added)
    for shaped in (image, shifted):
        shaped.set_estimates([(0, 40), (0, 10)])
    return hl.Pipeline(shifted), [image]


def _single_number() -> Kernel:
    image, total = hl.ImageParam(hl.Int(32), 0, "image"), hl.Func("total")
    total[()] = image[()] + 1
    for shaped in (image, total):
        shaped.set_estimates([])
    return hl.Pipeline(total), [image]


def _no_estimates() -> Kernel:
    image, copied = hl.ImageParam(hl.UInt(8), 2, "image"), hl.Func("copied")
    copied[x, y] = image[x, y]
    copied.set_estimates([(0, 8), (0, 8)])
    return hl.Pipeline(copied), [image]


def _fixed_shape() -> Kernel:
    """Its shape is fixed and its estimates are wrong, as in Halide's conv_layer."""
    image, turned = hl.ImageParam(hl.UInt(8), 2, "image"), hl.Func("turned")
    turned[x, y] = image[y, x]
    turned.output_buffer().dim(0).set_bounds(0, 12)
    turned.output_buffer().dim(1).set_bounds(0, 8)
    image.set_estimates([(0, 8), (0, 12)])
    turned.set_estimates([(0, 8), (0, 12)])
    return hl.Pipeline(turned), [image]


def _scaled_by_hand(estimates: bool) -> Kernel:
    """Two schedules of one pipeline, of which one has no estimates."""
    image, factor, product = hl.ImageParam(hl.Int(32), 2, "image"), hl.Param(hl.Int(32), "factor"), hl.Func("product")
    product[x, y] = image[x, y] * factor
    if estimates:
        factor.set_estimate(7)
        for shaped in (image, product):
            shaped.set_estimates([(0, 24), (0, 5)])
    return hl.Pipeline(product), [image, factor]


def _for_larger_outputs() -> Kernel:
    """Its tiles are larger than a small output, and its input's width decides how much of it is read."""
    image, spread = hl.ImageParam(hl.UInt(8), 1, "image"), hl.Func("spread")
    every = hl.RDom([(0, image.width())], "every")
    total = hl.Func("total")
    total[()] = hl.u8(0)
    total[()] += image[every]
    spread[x] = image[x] + total[()]
    total.compute_root()
    spread.split(x, xo, xi, 64, hl.TailStrategy.ShiftInwards)
    for shaped in (image, spread):
        shaped.set_estimates([(0, 256)])
    return hl.Pipeline(spread), [image]


def _edge(rounded_up: bool) -> Kernel:
    """Repeats its input's last element; one schedule reads whole vectors of the input, and so wants a larger one."""
    image, loaded, edge = hl.ImageParam(hl.UInt(8), 1, "image"), hl.Func("loaded"), hl.Func("edge")
    loaded[x] = image[x]
    edge[x] = loaded[hl.clamp(x + 1, 0, image.width() - 1)]
    loaded.compute_root()
    if rounded_up:
        loaded.vectorize(x, 16, hl.TailStrategy.RoundUp)
    for shaped in (image, edge):
        shaped.set_estimates([(0, 20)])
    return hl.Pipeline(edge), [image]


def _no_scalar_estimate() -> Kernel:
    added, number = hl.Param(hl.Int(32), "added"), hl.Func("number")
    number[x] = added
    number.set_estimates([(0, 8)])
    return hl.Pipeline(number), [added]


def _requires() -> Kernel:
    divisor, divided = hl.Param(hl.Int(32), "divisor"), hl.Func("divided")
    divisor.set_estimate(2)
    divisor.set_min_value(1)
    divided[x] = x / divisor
    divided.set_estimates([(0, 8)])
    return hl.Pipeline(divided), [divisor]


def _overrun() -> Kernel:
    """Stores elements where the input says, having promised that this is inside the output."""
    place, scattered = hl.ImageParam(hl.Int(32), 1, "place"), hl.Func("scattered")
    every = hl.RDom([(0, 2)], "every")
    scattered[x] = 0
    scattered[hl.unsafe_promise_clamped(place[every], 0, 7)] = 1
    place.set_estimates([(0, 2)])
    scattered.set_estimates([(0, 8)])
    return hl.Pipeline(scattered), [place]


def _several_blocks() -> Kernel:
    """Allocates eight blocks of a quarter of a megabyte in each call, all at once."""
    total, blocks = hl.Func("total"), [hl.Func(f"block{place}") for place in range(8)]
    for place, block in enumerate(blocks):
        block[x, y] = hl.f32(x * place + y)
        block.compute_root().vectorize(x, 4)
    total[x, y] = sum((block[y, x] for block in blocks[1:]), blocks[0][x, y])
    total.set_estimates([(0, 256), (0, 256)])
    return hl.Pipeline(total), []


KERNELS: dict[str, Callable[[], Kernel]] = {
    "blur_plain": _blur_plain,
    "blur_tiled": _blur_tiled,
    "blur_rounded_up": _blur_rounded_up,
    "blur_in_strips": _blur_in_strips,
    "blur_in_wide_strips": lambda: _blur_in_strips(alignment=16),
    "blur_in_strips_wrong": lambda: _blur_in_strips(wrong=True),
    "blur_in_one_strip": lambda: _blur_in_strips(strip=40),
    "blur_wrong": _blur_wrong,
    "blur_wrong_corner": _blur_wrong_corner,
    "scaled": lambda: _scaled(3.0),
    "scaled_nearly": lambda: _scaled(3.0003),
    "negated": lambda: _scaled(-3.0),
    "negated_nearly": lambda: _scaled(-3.0003),
    "poisoned": lambda: _scaled(3.0, poison=True),
    "interleaved": lambda: _interleaved(3),
    "interleaved_padded": lambda: _interleaved(4),
    "interleaved_narrow": lambda: _interleaved(3, width=2),
    "scalars": _scalars,
    "two_outputs": _two_outputs,
    "types": _types,
    "around_zero": lambda: _around_zero(0),
    "around_zero_nearly": lambda: _around_zero(1),
    "single_number": _single_number,
    "no_estimates": _no_estimates,
    "no_scalar_estimate": _no_scalar_estimate,
    "fixed_shape": _fixed_shape,
    "for_larger_outputs": _for_larger_outputs,
    "edge": lambda: _edge(rounded_up=False),
    "edge_rounded_up": lambda: _edge(rounded_up=True),
    "by_hand": lambda: _scaled_by_hand(estimates=False),
    "by_autoscheduler": lambda: _scaled_by_hand(estimates=True),
    "requires": _requires,
    "overrun": _overrun,
    "several_blocks": _several_blocks,
}


def compile_kernel(name: str, halide_target: str, folder: Path, symbol: str | None = None) -> KernelObject:
    """The object of one of `KERNELS`, without Halide's runtime."""
    pipeline, arguments = KERNELS[name]()
    function = symbol or name
    path = folder / f"{function}.o"
    outputs = {hl.OutputFileType.object: str(path)}
    pipeline.compile_to(outputs, arguments, function, hl.Target(f"{halide_target}-no_runtime"))
    return KernelObject(function, path)
