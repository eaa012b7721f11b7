"""Integer arithmetic of pipelines, an expression a generator: what `benchmarks.vector_arithmetic` tries.

`a` and `b` are two neighbours of the input. Names say what comes out and by way of which type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import halide as hl

# Halide's Python package gives its expressions no types.
Expression = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Idiom:
    """An expression, with the bits of its input's and output's elements, negative where they have a sign."""

    name: str
    input_bits: int
    output_bits: int
    value: Expression


IDIOMS = (
    Idiom("average_by_u16", 8, 8, lambda a, b: hl.u8((hl.u16(a) + hl.u16(b)) / 2)),
    Idiom("average_by_i32", 8, 8, lambda a, b: hl.u8((hl.i32(a) + hl.i32(b)) / 2)),
    Idiom("half_by_u16", 8, 16, lambda a, b: hl.u16(a) / 2),
    Idiom("half_by_i32", 8, 16, lambda a, b: hl.u16(hl.i32(a) / 2)),
    Idiom("luma_by_u16", 8, 8, lambda a, b: hl.u8((hl.u16(a) * 77 + hl.u16(b) * 150 + 128) >> 8)),
    Idiom("luma_by_u32", 8, 8, lambda a, b: hl.u8((hl.u32(a) * 77 + hl.u32(b) * 150 + 128) >> 8)),
    Idiom("luma_saturated_by_i32", 8, 8, lambda a, b: hl.u8_sat((hl.i32(a) * 77 + hl.i32(b) * 150 + 128) >> 8)),
    Idiom("sharpen_saturated_by_i16", 8, 8, lambda a, b: hl.u8_sat(hl.i16(a) * 3 - hl.i16(b) * 2)),
    Idiom("sharpen_saturated_by_i32", 8, 8, lambda a, b: hl.u8_sat(hl.i32(a) * 3 - hl.i32(b) * 2)),
    Idiom("sharpen_clamped_by_i16", 8, 8, lambda a, b: hl.u8(hl.clamp(hl.i16(a) * 3 - hl.i16(b) * 2, 0, 255))),
    Idiom("sharpen_clamped_by_i32", 8, 8, lambda a, b: hl.u8(hl.clamp(hl.i32(a) * 3 - hl.i32(b) * 2, 0, 255))),
    Idiom("gain_saturated_by_u16", 8, 8, lambda a, b: hl.u8_sat(hl.u16(a) * 3 + hl.u16(b))),
    Idiom("gain_saturated_by_u32", 8, 8, lambda a, b: hl.u8_sat(hl.u32(a) * 3 + hl.u32(b))),
    Idiom("gain_cut_off_by_u16", 8, 8, lambda a, b: hl.u8(hl.min(hl.u16(a) * 3 + hl.u16(b), 255))),
    Idiom("difference_by_u8", 8, 8, lambda a, b: hl.absd(a, b)),
    Idiom("difference_by_i16", 8, 8, lambda a, b: hl.u8(hl.abs(hl.i16(a) - hl.i16(b)))),
    Idiom("signed_difference_by_i16", 8, -16, lambda a, b: hl.i16(a) - hl.i16(b)),
    Idiom("signed_difference_by_i32", 8, -16, lambda a, b: hl.i16(hl.i32(a) - hl.i32(b))),
    Idiom("chosen_by_u8", 8, 8, lambda a, b: hl.select(a > b, a - b, hl.u8(7))),
    Idiom("blended_by_u8", 8, 8, lambda a, b: hl.lerp(a, b, hl.u8(100))),
    Idiom("quotient_by_u8", 8, 8, lambda a, b: a / hl.u8(7)),
    Idiom("remainder_by_u8", 8, 8, lambda a, b: a % hl.u8(10)),
    Idiom("quotient_by_u16", 16, 16, lambda a, b: a / hl.u16(7)),
    Idiom("quotient_by_i32", -32, -32, lambda a, b: a / 7),
    Idiom("product_by_u16", 8, 16, lambda a, b: hl.u16(a) * hl.u16(b)),
    Idiom("product_by_i32", -16, -32, lambda a, b: hl.i32(a) * hl.i32(b)),
    Idiom("fixed_point_product_by_i32", -16, -16, lambda a, b: hl.i16_sat((hl.i32(a) * hl.i32(b) + (1 << 14)) >> 15)),
    Idiom("top_of_product_by_u32", 16, 16, lambda a, b: hl.u16((hl.u32(a) * hl.u32(b)) >> 16)),
    Idiom("average_of_i16_by_i32", -16, -16, lambda a, b: hl.i16((hl.i32(a) + hl.i32(b)) / 2)),
    Idiom("top_byte_by_u16", 16, 8, lambda a, b: hl.u8(a >> 8)),
    Idiom("shifted_by_i32", -32, -32, lambda a, b: (a >> 5) - (b >> 7)),
)


def _type(bits: int) -> Any:
    return hl.UInt(bits) if bits > 0 else hl.Int(-bits)


def _register(idiom: Idiom) -> None:
    x = hl.Var("x")

    @hl.generator(name=idiom.name)
    class OneExpression(hl.Generator):
        lanes = hl.GeneratorParam(128)
        input = hl.InputBuffer(_type(idiom.input_bits), 1)
        output = hl.OutputBuffer(_type(idiom.output_bits), 1)

        def generate(self) -> None:
            value = idiom.value(self.input[x], self.input[x + 1])
            self.output[x] = hl.cast(_type(idiom.output_bits), value)
            self.input.set_estimates([(0, 513)])
            self.output.set_estimates([(0, 512)])
            if not self.using_autoscheduler():
                self.output.vectorize(x, self.lanes)


for one in IDIOMS:
    _register(one)

if __name__ == "__main__":
    hl.main()
