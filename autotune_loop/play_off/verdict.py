"""Whether a challenger is faster than the baseline, from times taken in turns: a rank test on paired ratios.

In every turn both are timed once, each in a fresh process, in random order. If they are equally fast, each turn's ratio
falls on either side of 1 with the same chance, whatever the noise and the drift of the machine: Wilcoxon's signed-rank
test on the logarithms then errs as often as it claims. The test may be made after each of LOOKS turns, and each look
spends an equal share of the error (Bonferroni), so that looking early costs no confidence.
"""

from __future__ import annotations

import itertools
import math
import statistics
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum

from halide_autotune.autotune_loop.play_off.times import means_of_pairs
from halide_autotune.autotune_loop.specification.objective import CONFIDENCE, LOOKS, Objective, ObjectiveKind
from halide_autotune.autotune_loop.store.published import SpeedUp
from halide_autotune.devices.device import Clock

# A smaller gain does not count, however certain: two copies of one kernel can differ by nearly as much, because the
# linker put them at different addresses.
LEAST_GAIN = 0.01
# Without noise any gain would be certain, but the same schedule in another executable differed by up to 0.9 %.
_LEAST_GAIN_WITHOUT_NOISE = 0.02
# The error on one side of the interval at one look.
_TAIL = (1 - CONFIDENCE) / 2 / len(LOOKS)


class VerdictReason(Enum):
    """Why the winner won."""

    FASTER = "faster"
    NOT_FASTER = "not faster"
    NOT_PROVEN = "not proven"
    SLOWER_ON_A_DEVICE = "slower on a device"
    NO_CHALLENGER = "no challenger"
    UNOPPOSED = "unopposed"
    UNCONFIRMED = "unconfirmed"


@dataclass(frozen=True)
class RatioEstimate:
    """The challenger's time as a share of the baseline's, with its interval.

    Attributes:
        low, high: bounds with `CONFIDENCE` over all looks; 0 or infinite if there are too few turns.
    """

    ratio: float
    low: float
    high: float

    def speed_text(self, than: str = "") -> str:
        """'1.050 times as fast as the default (95 % interval 1.021 to 1.080)'."""
        return self.speed_up("").text_than(than)

    def speed_up(self, than: str) -> SpeedUp:
        """How many times as fast the challenger is as the baseline, `than`."""
        low = 0.0 if math.isinf(self.high) else 1 / self.high
        return SpeedUp(1 / self.ratio, than, low, 1 / self.low if self.low else None)


@dataclass(frozen=True)
class Verdict:
    """The decision of a play-off.

    Attributes:
        winner: the name of what ships.
        challenger: the best candidate; empty if there was none.
        baseline: the incumbent or the default, which stays unless it is beaten; empty if there was none.
        message: the decision, for the user.
        estimate: over all devices; None if the two were not compared in turns of their own.
        p_value: two-sided, corrected for the looks; 1 if nothing was compared.
        turns: turns of challenger against baseline, after those that chose the challenger.
        by_device: the ratio on each device.
        devices_lost: devices that did not finish and do not count.
    """

    winner: str
    challenger: str
    baseline: str
    reason: VerdictReason
    message: str
    estimate: RatioEstimate | None = None
    p_value: float = 1.0
    turns: int = 0
    by_device: Mapping[str, RatioEstimate] = field(default_factory=dict)
    devices_lost: tuple[str, ...] = ()

    @property
    def is_decided(self) -> bool:
        """Whether the contenders were timed to the end."""
        return self.reason is not VerdictReason.UNCONFIRMED

    def speed_up(self, than: str) -> SpeedUp | None:
        """Of the winner over the baseline, `than`: 1 where that stays; None if they were not compared."""
        if self.winner == self.baseline:
            return SpeedUp(1.0, than)
        return None if self.estimate is None else self.estimate.speed_up(than)

    @property
    def confidence(self) -> float:
        """One minus the p-value."""
        return 1 - self.p_value

    def to_dict(self) -> dict[str, object]:
        """Return it as JSON values; missing bounds are null."""
        estimates = {device: _estimate_fields(estimate) for device, estimate in self.by_device.items()}
        return {
            **asdict(self),
            "reason": self.reason.value,
            "confidence": self.confidence,
            "estimate": None if self.estimate is None else _estimate_fields(self.estimate),
            "by_device": estimates,
        }


def _estimate_fields(estimate: RatioEstimate) -> dict[str, float | None]:
    low, high = estimate.low or None, None if math.isinf(estimate.high) else estimate.high
    return {"ratio": estimate.ratio, "low": low, "high": high}


@dataclass(frozen=True)
class Comparison:
    """Challenger against baseline after some turns.

    Attributes:
        is_faster: with `CONFIDENCE`, and by enough to count.
        is_won: faster, and on no device slower than the objective allows.
        is_hopeless: more turns are unlikely to show a gain that matters.
        slower_devices: for the worst case, devices on which it may be slower than the objective allows.
    """

    estimate: RatioEstimate
    p_value: float
    turns: int
    by_device: Mapping[str, RatioEstimate]
    is_faster: bool
    is_won: bool
    is_hopeless: bool
    slower_devices: tuple[str, ...]


def least_gain_by(clock: Clock) -> float:
    """How much less time a challenger must take by that clock, as a share of the baseline's."""
    return LEAST_GAIN if clock.is_noisy else _LEAST_GAIN_WITHOUT_NOISE


def compare_turns(
    turns: Sequence[Mapping[str, float]], objective: Objective, least_gain: float = LEAST_GAIN
) -> Comparison:
    """Test the turns so far.

    Args:
        turns: at least one; device → logarithm of challenger's time over baseline's in that turn, of equal devices.
        least_gain: a smaller one does not count, as a share of the baseline's time.
    """
    together = [objective.mean_log(turn) for turn in turns]
    by_device = {device: estimate_ratio([turn[device] for turn in turns]) for device in turns[0]}
    estimate = by_device[next(iter(by_device))] if len(by_device) == 1 else estimate_ratio(together)
    slower: tuple[str, ...] = ()
    if objective.kind is ObjectiveKind.WORST:
        limit = 1 + objective.worst_tolerance
        slower = tuple(device for device, ratio in by_device.items() if ratio.high > limit)
    is_faster = estimate.high < 1 - least_gain
    no_gain = (estimate.ratio >= 1 and len(turns) > LOOKS[0]) or estimate.low > 1 - least_gain
    surely_slower = any(by_device[device].low > 1 + objective.worst_tolerance for device in slower)
    return Comparison(
        estimate=estimate,
        p_value=min(1.0, 2 * len(LOOKS) * min(_tail(together, "less"), _tail(together, "greater"))),
        turns=len(turns),
        by_device=by_device,
        is_faster=is_faster,
        is_won=is_faster and not slower,
        is_hopeless=surely_slower or (not is_faster and no_gain),
        slower_devices=slower,
    )


def estimate_ratio(logs: Sequence[float]) -> RatioEstimate:
    """Hodges' and Lehmann's estimate, and the interval that Wilcoxon's test does not reject at one look.

    Args:
        logs: logarithms of the ratio, one a turn; at least one.
    """
    every = means_of_pairs(logs)
    means = sorted(set(every))
    margin = 1e-9 + abs(means[-1] - means[0])
    between = [(a + b) / 2 for a, b in itertools.pairwise(means)]
    shifts = [means[0] - margin, *between, means[-1] + margin]

    def is_below(shift: float) -> bool:
        return _tail([value - shift for value in logs], "less") <= _TAIL

    def is_not_above(shift: float) -> bool:
        return _tail([value - shift for value in logs], "greater") > _TAIL

    upper = bisect_left(shifts, True, key=is_below)
    lower = bisect_left(shifts, True, key=is_not_above)
    high = math.inf if upper == len(shifts) else math.exp(means[max(upper - 1, 0)])
    low = 0.0 if lower == 0 else math.exp(means[min(lower, len(means)) - 1])
    return RatioEstimate(math.exp(statistics.median(every)), low, high)


def _tail(logs: Sequence[float], side: str) -> float:
    """The one-sided p-value of Wilcoxon's signed-rank test."""
    # Imported here: it takes half a second.
    from scipy.stats import wilcoxon

    differing = [value for value in logs if value]
    return float(wilcoxon(differing, alternative=side, method="exact").pvalue) if differing else 1.0


def decided_message(
    verdict: Verdict, compared: Comparison, labels: tuple[str, str], tolerance: float, least_gain: float
) -> str:
    """For a challenger that was compared with the baseline.

    Args:
        verdict: without its message.
        labels: of challenger and baseline.
        tolerance: how much slower the challenger may be on any device, as a share.
        least_gain: as for `compare_turns`.
    """
    challenger, baseline = labels
    speed, turns = compared.estimate.speed_text(baseline), f"{compared.turns} turns"
    stays = f"{baseline} stays:"
    lost = verdict.devices_lost
    does = "does" if len(lost) == 1 else "do"
    faster = f"over {100 * least_gain / (1 - least_gain):.2g} % faster"
    gone = f" {', '.join(lost)} did not finish and {does} not count." if lost else ""
    match verdict.reason:
        case VerdictReason.FASTER:
            text = f"{challenger} is {speed}, in {turns} on {', '.join(compared.by_device)}."
        case VerdictReason.SLOWER_ON_A_DEVICE:
            slower = ", ".join(f"{d}: {compared.by_device[d].speed_text()}" for d in compared.slower_devices)
            limit = f"it may be more than {tolerance:.1%} slower on some device"
            text = f"{stays} {challenger} is {speed} over all devices, but {limit} ({slower})."
        case VerdictReason.NOT_FASTER:
            text = f"{stays} no schedule is {faster}; the best, {challenger}, is {speed}, in {turns}."
        case VerdictReason.NOT_PROVEN:
            share = f"{CONFIDENCE * 100:.0f} % confidence"
            text = f"{stays} {turns} do not show with {share} that {challenger} is {faster}; it is {speed}."
        case _:
            text = "Unconfirmed: --objective worst needs the times of every device."
    return sentence(text + gone)


def sentence(text: str) -> str:
    """Capitalise the labels 'the default' and 'the incumbent' at the start of a text; names stay as they are."""
    return text[:1].upper() + text[1:] if text.startswith("the ") else text
