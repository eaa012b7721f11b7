"""What each pipeline of examples/ computes, written a second time in numpy.

Arrays are indexed the other way round than in Halide: [channel, y, x]. Integer pipelines are exact;
floating-point ones are computed in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class ExampleCase:
    """One example at a small size: generator parameters, arguments in declared order, expected output."""

    name: str
    parameters: dict[str, int]
    arguments: tuple[Array | int | float, ...]
    expected: Array

    @property
    def is_exact(self) -> bool:
        """Whether the pipeline is all integers, so that every schedule must give the same bits."""
        return bool(np.issubdtype(self.expected.dtype, np.integer))


def pad_edges(image: Array, size: int, mode: Literal["edge", "reflect"] = "edge") -> Array:
    """Pad the last two axes (y, x) of image by size on every side."""
    widths = [(0, 0)] * (image.ndim - 2) + [(size, size)] * 2
    padded: Array = np.pad(image, widths, mode=mode)
    return padded


def moved(image: Array, dx: int, dy: int, margin: int) -> Array:
    """image(x + dx, y + dy), for an image with margin pixels around it; the result has none."""
    height, width = image.shape[-2:]
    return image[..., margin + dy : height - margin + dy, margin + dx : width - margin + dx]


def separable_filter(image: Array, radius: int) -> Array:
    """Binomial blur, rounded once at the end."""
    taps = [comb(2 * radius, k) for k in range(2 * radius + 1)]
    padded = pad_edges(image.astype(np.int64), radius)
    total = np.zeros(image.shape, np.int64)
    for dy, dx in np.ndindex(2 * radius + 1, 2 * radius + 1):
        total += taps[dx] * taps[dy] * moved(padded, dx - radius, dy - radius, radius)
    return ((total + (1 << (4 * radius - 1))) >> (4 * radius)).astype(np.uint8)


def stencil_chain(image: Array, stages: int) -> Array:
    """The 3x3 kernel (1 2 1)x(1 2 1)/16, stages times; edges repeated before the first time only."""
    current = pad_edges(image.astype(np.int64), stages)
    for _ in range(stages):
        rows = current[:, :-2] + 2 * current[:, 1:-1] + current[:, 2:]
        current = (rows[:-2] + 2 * rows[1:-1] + rows[2:] + 8) >> 4
    return current.astype(np.uint16)


def edge_detector(image: Array, thickness: int) -> Array:
    """Smoothed, Sobel's gradient, and the strongest edge near each pixel; edges repeated before the first step only."""
    current = pad_edges(image.astype(np.int64), 2 + thickness)
    columns = current[:-2] + 2 * current[1:-1] + current[2:]
    smooth = (columns[:, :-2] + 2 * columns[:, 1:-1] + columns[:, 2:] + 8) >> 4
    patches = np.lib.stride_tricks.sliding_window_view(smooth, (3, 3))
    across = np.einsum("yxji,j,i->yx", patches, [1, 2, 1], [-1, 0, 1])
    down = np.einsum("yxji,j,i->yx", patches, [-1, 0, 1], [1, 2, 1])
    strength = np.minimum(np.abs(across) + np.abs(down), 255)
    size = 2 * thickness + 1
    strongest: Array = np.lib.stride_tricks.sliding_window_view(strength, (size, size)).max(axis=(2, 3))
    return strongest.astype(np.uint8)


def corner_detector(image: Array, sensitivity: float, radius: int) -> Array:
    """Harris and Stephens' response."""
    margin = radius + 1
    luma = np.tensordot([0.299, 0.587, 0.114], pad_edges(image, margin).astype(np.float64) / 255, axes=1)
    patches = np.lib.stride_tricks.sliding_window_view(luma, (3, 3))
    smooth, slope = np.array([1, 2, 1]) / 4, np.array([-1, 0, 1]) / 2
    gx = np.einsum("yxji,j,i->yx", patches, smooth, slope)
    gy = np.einsum("yxji,j,i->yx", patches, slope, smooth)
    offsets = range(-radius, radius + 1)

    def window(product: Array) -> Array:
        terms = [moved(product, dx, dy, radius) for dx in offsets for dy in offsets]
        return np.asarray(np.sum(terms, axis=0))

    xx, xy, yy = window(gx * gx), window(gx * gy), window(gy * gy)
    return np.asarray(xx * yy - xy * xy - sensitivity * (xx + yy) ** 2, np.float32)


def bilateral_grid(image: Array, amount: float, cell: int, range_bits: int) -> Array:
    """Splat, blur and slice a grid of (value, count); nodes -2 to the last + 2 are kept on each axis."""
    height, width = image.shape
    reach = 4 * cell
    padded = pad_edges(image.astype(np.int64), reach)
    ys, xs = np.indices(padded.shape) - reach
    node_x, node_y = (xs + cell // 2) // cell + 4, (ys + cell // 2) // cell + 4
    node_z = ((padded + (1 << (range_bits - 1))) >> range_bits) + 2
    grid = np.zeros((2, (256 >> range_bits) + 5, node_y.max() + 1, node_x.max() + 1))
    np.add.at(grid[0], (node_z, node_y, node_x), padded)
    np.add.at(grid[1], (node_z, node_y, node_x), 1)
    for axis in (1, 2, 3):
        grid = np.roll(grid, 1, axis) + 2 * grid + np.roll(grid, -1, axis)

    rows, columns = np.indices((height, width))
    values = image.astype(np.int64)
    result = np.zeros((2, height, width))
    depth = 1 << range_bits
    axes: list[tuple[Array, int]] = [(values, depth), (rows, cell), (columns, cell)]
    for corner in np.ndindex(2, 2, 2):
        weight = np.ones((height, width))
        for side, (position, size) in zip(corner, axes, strict=True):
            fraction = (position % size) / size
            weight *= fraction if side else 1 - fraction
        at = (values // depth + 2 + corner[0], rows // cell + 4 + corner[1], columns // cell + 4 + corner[2])
        result += weight * np.stack([grid[0][at], grid[1][at]])
    return np.asarray(values * (1 - amount) + amount * result[0] / result[1], np.float32)


def camera_pipeline(
    raw: Array, matrix: Array, black: int, gain_red: int, gain_blue: int, tone: int, sharpness: int
) -> Array:
    """Bayer to RGB at full size: the four sites of the mosaic are told apart by masks."""
    margin = 4
    signal = np.maximum(pad_edges(raw.astype(np.int64), margin, "reflect") - black, 0)
    ys, xs = np.indices(signal.shape)
    odd_x, odd_y = xs % 2 == 1, ys % 2 == 1
    gain = np.where(odd_x & odd_y, gain_blue, np.where(odd_x | odd_y, 256, gain_red))
    mosaic = np.minimum((signal * gain) >> 8, 1023)

    m = {(dx, dy): moved(mosaic, dx, dy, 1) for dx in (-1, 0, 1) for dy in (-1, 0, 1)}
    odd_x, odd_y = odd_x[1:-1, 1:-1], odd_y[1:-1, 1:-1]
    across, along = (m[-1, 0] + m[1, 0] + 1) >> 1, (m[0, -1] + m[0, 1] + 1) >> 1
    corners = (m[-1, -1] + m[1, -1] + m[-1, 1] + m[1, 1] + 2) >> 2
    flatter = np.where(abs(m[-1, 0] - m[1, 0]) < abs(m[0, -1] - m[0, 1]), across, along)
    here = m[0, 0]
    red = np.where(odd_y, np.where(odd_x, corners, along), np.where(odd_x, across, here))
    green = np.where(odd_x == odd_y, flatter, here)
    blue = np.where(odd_y, np.where(odd_x, here, across), np.where(odd_x, along, corners))

    mixed = np.tensordot(matrix.astype(np.int64), np.stack([red, green, blue]), axes=1)
    corrected = np.clip((mixed + 128) >> 8, 0, 1023)
    toned = 255 * corrected * (tone + 1023) // (corrected + tone) // 1023
    rows = toned[:, :, :-2] + 2 * toned[:, :, 1:-1] + toned[:, :, 2:]
    blurred = (rows[:, :-2] + 2 * rows[:, 1:-1] + rows[:, 2:] + 8) >> 4
    centre = toned[:, 1:-1, 1:-1]
    sharpened = centre + (((centre - blurred) * min(sharpness, 127)) >> 5)
    return np.asarray(np.clip(sharpened, 0, 255), np.uint8)[:, 2:-2, 2:-2]


def convolution_layer(image: Array, weights: Array, bias: Array) -> Array:
    """Axes: image [image, y, x, channel], weights [input channel, y, x, output channel]."""
    height, width = image.shape[1] - 2, image.shape[2] - 2
    total = bias.astype(np.float64) + sum(
        image[:, dy : dy + height, dx : dx + width].astype(np.float64) @ weights[:, dy, dx]
        for dy in range(3)
        for dx in range(3)
    )
    return np.maximum(total, 0).astype(np.float32)


def bytes_of(shape: tuple[int, ...]) -> Array:
    """Random uint8 values, the same in every run."""
    return np.random.default_rng(1).integers(0, 256, shape, np.uint8)


def floats_of(shape: tuple[int, ...], seed: int) -> Array:
    """Random float32 values from -1 to 1, the same in every run."""
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def _separable_filter_case() -> ExampleCase:
    image = bytes_of((3, 45, 75))
    parameters = {"width": 75, "height": 45, "radius": 4}
    return ExampleCase("separable_filter", parameters, (image,), separable_filter(image, 4))


def _stencil_chain_case() -> ExampleCase:
    image = np.random.default_rng(2).integers(0, 65536, (45, 75), np.uint16)
    parameters = {"width": 75, "height": 45, "stages": 5}
    return ExampleCase("stencil_chain", parameters, (image,), stencil_chain(image, 5))


def _edge_detector_case() -> ExampleCase:
    image = bytes_of((45, 75))
    parameters = {"width": 75, "height": 45, "thickness": 2}
    return ExampleCase("edge_detector", parameters, (image,), edge_detector(image, 2))


def _corner_detector_case() -> ExampleCase:
    image = bytes_of((3, 45, 75))
    parameters = {"width": 75, "height": 45, "radius": 2}
    return ExampleCase("corner_detector", parameters, (image, 0.05), corner_detector(image, 0.05, 2))


def _bilateral_grid_case() -> ExampleCase:
    image = bytes_of((45, 75))
    parameters = {"width": 75, "height": 45, "cell": 6, "range_bits": 5}
    return ExampleCase("bilateral_grid", parameters, (image, 0.75), bilateral_grid(image, 0.75, 6, 5))


def _camera_pipeline_case() -> ExampleCase:
    raw = np.random.default_rng(3).integers(0, 1024, (48, 128), np.uint16)
    matrix = np.array([[440, -150, -34], [-60, 400, -84], [20, -190, 426]], np.int16)
    arguments = (raw, matrix, 32, 448, 384, 400, 40)
    parameters = {"width": 128, "height": 48}
    return ExampleCase("camera_pipeline", parameters, arguments, camera_pipeline(*arguments))


def _convolution_layer_case() -> ExampleCase:
    parameters = {"input_channels": 12, "output_channels": 32, "width": 16, "height": 9, "images": 2}
    arguments = (floats_of((2, 11, 18, 12), 4), floats_of((12, 3, 3, 32), 5), floats_of((32,), 6))
    return ExampleCase("convolution_layer", parameters, arguments, convolution_layer(*arguments))


def _matrix_product_case() -> ExampleCase:
    left, right = floats_of((32, 50), 7), floats_of((50, 64), 8)
    parameters = {"rows": 32, "columns": 64, "depth": 50}
    product = (0.5 * (left.astype(np.float64) @ right)).astype(np.float32)
    return ExampleCase("matrix_product", parameters, (left, right, 0.5), product)


CASES: dict[str, Callable[[], ExampleCase]] = {
    "separable_filter": _separable_filter_case,
    "stencil_chain": _stencil_chain_case,
    "corner_detector": _corner_detector_case,
    "edge_detector": _edge_detector_case,
    "bilateral_grid": _bilateral_grid_case,
    "camera_pipeline": _camera_pipeline_case,
    "convolution_layer": _convolution_layer_case,
    "matrix_product": _matrix_product_case,
}
