"""Sizes that a schedule is tried at: those asked for, and the neighbours that schedules stumble over."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from halide_autotune.autotune_loop.shipping.files.guard_header import KernelArgument
from halide_autotune.targets.errors import UsageError


class SizeVerdict(Enum):
    """The result of a call at a size."""

    ACCEPTED = "accepted"
    # Halide's checks stopped it before anything was computed; the caller gets an error code.
    REFUSED = "refused by Halide"
    WRONG_OUTPUT = "wrong output"
    FAILED = "failed"


@dataclass(frozen=True)
class SizeOutcome:
    """One size's verdict.

    Attributes:
        size: of the first output, such as '1920x1080', or '640x480@3x5' with the minimum coordinates after the @.
        message: why it was not accepted; else empty.
    """

    size: str
    verdict: SizeVerdict
    message: str


_SIZE = re.compile(r"(?P<extents>\d{1,9}(?:x\d{1,9})*)(?:@(?P<mins>-?\d{1,9}(?:x-?\d{1,9})*))?", re.ASCII)
# Shorter dimensions are channels or the like, which are not part of the size.
_SHORTEST_SPATIAL = 5
_ODD_EXTENTS = (131, 67)
_SMALLER_THAN_A_TILE = (7, 5)
_OFFSETS = (3, -5)


@dataclass(frozen=True)
class OutputSize:
    """A size of the first output.

    Attributes:
        extents: of its first dimensions; the others are as estimated.
        mins: the minimum coordinates of those; empty for the estimated ones.
    """

    extents: tuple[int, ...]
    mins: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """As the user writes it."""
        return _joined(self.extents) + (f"@{_joined(self.mins)}" if self.mins else "")


def parse_output_size(text: str) -> OutputSize:
    """Read '1920x1080', or '640x480@3x5' with the minimum coordinates after the @.

    Raises:
        UsageError: it is neither.
    """
    found = _SIZE.fullmatch(text)
    extents = _numbers(found["extents"]) if found else ()
    mins = _numbers(found["mins"]) if found and found["mins"] else ()
    if not extents or (mins and len(mins) != len(extents)):
        raise UsageError(
            f"--accept-size {text!r} is not a size.",
            next_step="Write 1920x1080, or 640x480@3x5 with the minimum coordinates.",
        )
    return OutputSize(extents, mins)


def parse_accepted_size(text: str) -> tuple[str, OutputSize]:
    """Read 'blur=1920x1080', a size for one of several generators; without the name it is for all: ''.

    Raises:
        UsageError: it is not a size.
    """
    name, _, size = text.rpartition("=")
    return name, parse_output_size(size)


def neighbouring_sizes(signature: Sequence[KernelArgument]) -> tuple[OutputSize, ...]:
    """The estimated size, one less with an offset, a small odd size, smaller than any tile, one pixel.

    Empty if every output is a single number.
    """
    if not _sized_outputs(signature):
        return ()
    estimates = first_output(signature).estimates
    extents = [extent for _, extent in estimates]
    spatial = [index for index, extent in enumerate(extents) if extent >= _SHORTEST_SPATIAL][:2]
    if not spatial:
        return (OutputSize(tuple(extents)),)
    shown = extents[: spatial[-1] + 1]

    def size(values: Sequence[int], offsets: Sequence[int] = ()) -> OutputSize:
        made = list(shown)
        mins = [least for least, _ in estimates[: len(shown)]]
        for place, index in enumerate(spatial):
            made[index] = min(values[place], extents[index])
            mins[index] += offsets[place] if offsets else 0
        return OutputSize(tuple(made), tuple(mins) if offsets else ())

    spatial_extents = [extents[index] for index in spatial]
    sizes = [
        size(spatial_extents),
        size([extent - 1 for extent in spatial_extents], _OFFSETS),
        size(_ODD_EXTENTS),
        size(_SMALLER_THAN_A_TILE),
        size((1, 1)),
    ]
    return tuple(dict.fromkeys(sizes))


def first_output(signature: Sequence[KernelArgument]) -> KernelArgument:
    """The output that sizes refer to.

    Raises:
        UsageError: there is none.
    """
    outputs = _sized_outputs(signature)
    if not outputs:
        raise UsageError(
            "The generator has no output with dimensions and estimates, so it has no sizes.",
            next_step="Omit --accept-size.",
        )
    return outputs[0]


def _sized_outputs(signature: Sequence[KernelArgument]) -> list[KernelArgument]:
    return [argument for argument in signature if argument.is_output and argument.estimates]


def argument_sizes(signature: Sequence[KernelArgument], size: OutputSize) -> dict[str, str]:
    """Every buffer's shape for the runner: dimensions with the same estimates as the output's change with it.

    Raises:
        UsageError: the output has fewer dimensions than the size.
    """
    output = first_output(signature)
    if len(size.extents) > len(output.estimates):
        raise UsageError(
            f"--accept-size {size.text} has {len(size.extents)} dimensions, but the output {output.name} has "
            f"{len(output.estimates)}.",
            next_step="For one of several generators, write NAME=SIZE.",
        )
    sizes = {}
    for argument in signature:
        if not argument.estimates:
            continue
        extents = [extent for _, extent in argument.estimates]
        mins = [least for least, _ in argument.estimates]
        for index, extent in enumerate(size.extents[: len(extents)]):
            if argument.estimates[index] == output.estimates[index]:
                extents[index] = extent
                mins[index] = size.mins[index] if size.mins else mins[index]
        sizes[argument.name] = f"{_joined(extents)}@{_joined(mins)}"
    return sizes


def _joined(numbers: Sequence[int]) -> str:
    return "x".join(map(str, numbers))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split("x"))
