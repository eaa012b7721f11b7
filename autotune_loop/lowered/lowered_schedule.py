"""What models see of a lowered schedule."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from halide_autotune.autotune_loop.lowered.features import NestFeatures, features_of_nest
from halide_autotune.autotune_loop.lowered.lowered_file import pack_lowered, unpack_lowered
from halide_autotune.targets.lowering.loop_nest import LoopNest


@dataclass(frozen=True)
class LoweredSchedule:
    """A lowered schedule.

    Attributes:
        features: numbers that any pipeline has; see `NEST_FEATURE_NAMES`.
        packed: its loop nest, as its file has it: a thousandth of what the nest itself takes.
        cores: that parallel loops run on.
    """

    features: NestFeatures
    packed: bytes
    cores: int


def lowered_schedule(nest: LoopNest, cores: int) -> LoweredSchedule:
    """What models see of a loop nest.

    Args:
        cores: that parallel loops run on.
    """
    return LoweredSchedule(features_of_nest(nest, cores), pack_lowered(nest), cores)


def read_lowered_schedule(path: Path, cores: int) -> LoweredSchedule:
    """What models see of the loop nest in a file.

    Args:
        cores: that parallel loops run on.

    Raises:
        OSError: the file cannot be read.
        GeneratorError: it is damaged, too large, or of another version.
    """
    packed = path.read_bytes()
    # To pack the nest again takes as long as all the rest, and a run that is resumed reads thousands.
    return LoweredSchedule(features_of_nest(unpack_lowered(packed, path), cores), packed, cores)
