"""Convolutions with dilation that a file has as three operators.

Where the batch was of any size, the converter moves a picture's pixels into it, so that those of a window lie side by
side, and back.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from halide_autotune.autotune_loop.network.tflite.tflite_file import TfliteFile, TfliteOperator

_BEFORE, _INSIDE, _AFTER = "SPACE_TO_BATCH_ND", ("CONV_2D", "DEPTHWISE_CONV_2D"), "BATCH_TO_SPACE_ND"
_VALID = 1


def with_dilation(file: TfliteFile) -> TfliteFile:
    """The file with one operator for each three, where nothing else needs what is between them.

    The operator's options say what is padded before the picture: PadH and PadW.
    """
    uses = Counter(place for each in file.operators for place in each.inputs)
    uses.update(file.outputs)
    makers = {each.outputs[0]: each for each in file.operators}
    joined: dict[int, TfliteOperator] = {}
    inner: set[int] = set()
    for after in file.operators:
        inside = makers.get(after.inputs[0]) if after.code == _AFTER and after.inputs else None
        before = makers.get(inside.inputs[0]) if inside is not None and inside.code in _INSIDE else None
        if inside is None or before is None or before.code != _BEFORE or uses[inside.outputs[0]] != 1:
            continue
        options = _options(file, before, inside, after)
        if options is not None:
            whole = replace(inside, inputs=(before.inputs[0], *inside.inputs[1:]), outputs=after.outputs)
            joined[after.number] = replace(whole, number=after.number, options=options)
            inner.add(inside.number)
            # Several convolutions may take it.
            uses[before.outputs[0]] -= 1
    left = [joined.get(each.number, each) for each in file.operators if each.number not in inner]
    is_needed = [each.code != _BEFORE or uses[each.outputs[0]] > 0 for each in left]
    return replace(file, operators=tuple(each for each, needed in zip(left, is_needed, strict=True) if needed))


def _options(
    file: TfliteFile, before: TfliteOperator, inside: TfliteOperator, after: TfliteOperator
) -> dict[str, float] | None:
    """Those of the whole; None if it is another one than a convolution with dilation."""
    if len(before.inputs) != 3 or len(after.inputs) != 3:
        return None
    block, pads = (file.tensors[place].data for place in before.inputs[1:])
    block_after, crops = (file.tensors[place].data for place in after.inputs[1:])
    if block is None or pads is None or block_after is None or crops is None:
        return None
    is_usual = block.shape == (2,) and pads.shape == crops.shape == (2, 2) and block.tolist() == block_after.tolist()
    steps = [inside.options.get(name) for name in ("StrideH", "StrideW", "DilationHFactor", "DilationWFactor")]
    if not is_usual or crops[:, 0].any() or steps != [1] * 4 or inside.options["Padding"] != _VALID:
        return None
    dilations = {"DilationHFactor": int(block[0]), "DilationWFactor": int(block[1])}
    return {**inside.options, **dilations, "PadH": int(pads[0, 0]), "PadW": int(pads[1, 0])}
