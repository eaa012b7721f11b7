"""Which random programs a training draws, and which of them it never learns from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from halide_autotune.autotune_loop.training.training_options import ProgramOptions

# The generator of them all.
PROGRAM_FILE = Path(__file__).with_name("random_program.py")
_LARGEST_SEED = 2**31
_FEWEST_STAGES, _STAGE_COUNTS = 4, 8
_JUDGED_EVERY = 5


def seeds_of(options: ProgramOptions, iteration: int) -> range:
    """The seeds of an iteration's programs; the first iteration is 0, and no two have a program in common."""
    first = (options.seed * 1_000_003 + iteration * options.programs) % (_LARGEST_SEED - options.programs)
    return range(first, first + options.programs)


def program_sets(seeds: Sequence[int], size_px: tuple[int, int], *, for_dsp: bool) -> tuple[tuple[str, ...], ...]:
    """The generator parameters of each program.

    Args:
        for_dsp: of 8 and 16 bits and without floating point, as pipelines for a DSP are.
    """
    width, height = size_px
    kind = ("for_dsp=true", "output.type=uint8") if for_dsp else ("output.type=float32",)
    return tuple(
        (f"seed={seed}", f"stages={_FEWEST_STAGES + seed % _STAGE_COUNTS}", f"width={width}", f"height={height}", *kind)
        for seed in seeds
    )


def is_judged_by(seed: int) -> bool:
    """Whether a program is one of those that weights are judged by, and that nothing is learnt from."""
    return seed % _JUDGED_EVERY == _JUDGED_EVERY - 1
