"""The argument by which a call tells at which of a run's sizes it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from halide_autotune.devices.timing.input_size import sizes_of
from halide_autotune.devices.timing.measure_settings import KernelInputs


@dataclass(frozen=True)
class DecidingArgument:
    """A buffer that has other extents at each size.

    Attributes:
        name: of the argument; an output if one tells the sizes apart.
        extents: size, as times have it → extents such as '640x480'; in the order of the run, the main size first.
    """

    name: str
    extents: Mapping[str, str]


def deciding_argument(inputs: KernelInputs) -> DecidingArgument | None:
    """What tells the sizes of a run apart; None with one size, or where no buffer does."""
    sizes = sizes_of(inputs)
    if len(sizes) < 2:
        return None
    # Outputs are the last arguments.
    for name in reversed(list(sizes[-1].inputs.sizes)):
        extents = {size.label: size.inputs.sizes.get(name, "").partition("@")[0] for size in sizes}
        dimensions = {text.count("x") for text in extents.values()}
        if all(extents.values()) and len(set(extents.values())) == len(sizes) and len(dimensions) == 1:
            return DecidingArgument(name, extents)
    return None
