"""Where weights come from, as a person reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sdk.display.quantities import count_text, share_text

if TYPE_CHECKING:
    from weights.lineage import Lineage

_DIGITS_OF_HASH = 12


def lineage_facts(lineage: Lineage) -> dict[str, str]:
    """What is known, by a label of at most 15 letters; what is not known is left out."""
    facts = {
        "network": lineage.network + (f" of Halide {lineage.halide_version}" if lineage.halide_version else ""),
        "feature version": str(lineage.feature_version or ""),
        "timed on": _timed_on(lineage),
        "trained on": _trained_on(lineage),
        "started from": lineage.parent_sha256 and f"weights {lineage.parent_sha256[:_DIGITS_OF_HASH]}…",
        "judged on": _judged_on(lineage.held_out_samples),
        "pairs in order": _share(lineage.pairwise_accuracy, ""),
        "best in first 8": _share(lineage.best_in_top_8, " of the best one's time: 100 % is perfect"),
        "created": lineage.created,
        "note": lineage.note,
    }
    return {label: text for label, text in facts.items() if text}


def _timed_on(lineage: Lineage) -> str:
    cores = count_text(lineage.parallelism, "core") if lineage.parallelism else ""
    clock = {"": "", "wall": "wall clock"}.get(lineage.clock, f"{lineage.clock} time")
    device = f"device {lineage.device}" if lineage.device else ""
    return ", ".join(text for text in (lineage.profile, device, cores, clock) if text)


def _trained_on(lineage: Lineage) -> str:
    counts = [_schedules(lineage.samples)] if lineage.samples else []
    if lineage.pipelines:
        counts.append(count_text(lineage.pipelines, "pipeline"))
    rounds = f", in {count_text(lineage.rounds, 'round')}" if lineage.rounds else ""
    return " of ".join(counts) + rounds if counts else ""


def _judged_on(count: int) -> str:
    return f"{_schedules(count)} that {'was' if count == 1 else 'were'} held out" if count else ""


def _schedules(count: int) -> str:
    return f"{count:,} schedule{'' if count == 1 else 's'}"


def _share(share: float | None, more: str) -> str:
    return "" if share is None else share_text(share) + more
