"""What a shipped header says of its speed, and whether times of today keep it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from halide_autotune.autotune_loop.play_off.verdict import estimate_ratio
from halide_autotune.autotune_loop.store.published import DEFAULT, SpeedUp
from halide_autotune.autotune_loop.store.size_schedules import GENERAL
from halide_autotune.devices.timing.input_size import ESTIMATES, at_size
from halide_autotune.devices.timing.measure_settings import KernelInputs
from halide_autotune.targets.errors import RunFolderError
from halide_autotune.targets.values.texts import parse_size_set


@dataclass(frozen=True)
class Promise:
    """The committed figures.

    Attributes:
        tuned_ms: the schedule's time.
        speed_up: how many times as fast as what it was compared with; None where that has no time.
        clock: that timed both.
        sizes: what differs from size to size, such as 'input=640x480', the main one first; empty for the estimates.
        than: what it was compared with: the default, or the schedule for all sizes.
    """

    tuned_ms: float
    speed_up: float | None
    clock: str
    sizes: tuple[str, ...] = ()
    than: str = DEFAULT

    @classmethod
    def of(cls, facts: Mapping[str, Any], place: str, than: str = DEFAULT) -> Promise:
        """What the provenance of a shipped schedule says.

        The speed-up is that of the play-off, where it was against that schedule; else the two medians of its turns, but
        where parameters were tuned: there the default is of other parameters than those of the schedule.

        Args:
            place: where the facts are from, for messages.
            than: what its times of today are compared with: the default, or the schedule for all sizes.

        Raises:
            RunFolderError: a figure is none.
        """
        tuned_ms, default_ms = _figure(facts, "tuned_ms", place), _figure(facts, "default_ms", place)
        if tuned_ms is None:
            raise RunFolderError(f"{place}: tuned_ms is missing.", next_step="Restore it, or ship again.")
        # Earlier versions did not say it of a size's own schedule, which is compared with nothing else.
        said = facts.get("speed_up_than", GENERAL if "size" in facts else None)
        of_pairs = _figure(facts, "speed_up", place) if said == than else None
        of_medians = None if default_ms is None or "default_parameters" in facts else default_ms / tuned_ms
        return cls(tuned_ms, of_pairs or of_medians, str(facts.get("clock")), _sizes_of(facts), than)

    def called_with(self, inputs: KernelInputs) -> KernelInputs:
        """The inputs with the sizes that the figures are of.

        Args:
            inputs: with the size or the value of every argument.
        """
        if not self.sizes:
            return inputs
        main, *further = self.sizes
        at_main = inputs if main == ESTIMATES else at_size(inputs, parse_size_set(main))
        return replace(at_main, also_sizes=tuple(further))

    def is_kept(self, speed_up: SpeedUp, tolerance: float) -> bool | None:
        """Whether a speed-up is the promised one or better; None if that is not known yet.

        Args:
            tolerance: how much more of the other's time it may take, as a share of what it took.
        """
        if self.speed_up is None:
            return None
        least = self.speed_up / (1 + tolerance)
        if speed_up.low is not None and speed_up.low >= least:
            return True
        return False if speed_up.high is not None and speed_up.high < least else None


def speed_up_now(log_ratios: Sequence[float], than: str, *, is_noisy: bool) -> SpeedUp:
    """How many times as fast as another schedule, with the interval; without noise one turn says all.

    Args:
        log_ratios: logarithms of the time over the other's, one a turn; at least one.
        than: the other.
    """
    estimate = estimate_ratio(log_ratios)
    if not is_noisy:
        return SpeedUp(1 / estimate.ratio, than, 1 / estimate.ratio, 1 / estimate.ratio)
    return estimate.speed_up(than)


def _figure(facts: Mapping[str, Any], name: str, place: str) -> float | None:
    value = facts.get(name)
    if value is None or (isinstance(value, int | float) and 0 < value < math.inf):
        return value
    raise RunFolderError(f"{place}: {name} is {value!r}, not a number above 0.", next_step="Restore it, or ship again.")


def _sizes_of(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Of '0.5 ms at the estimates; 0.2 ms at input=640x480' what is after 'at'; or the one size that it is for."""
    if "size" in facts:
        return (str(facts["size"]),)
    return tuple(one.partition(" at ")[2] for one in str(facts.get("sizes", "")).split("; ") if one)
