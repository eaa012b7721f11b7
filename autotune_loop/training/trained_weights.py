"""The result of a training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from halide_autotune.autotune_loop.cost_model.ranking import RankingScores
from halide_autotune.autotune_loop.training.recorded_programs import RecordedProgram


@dataclass(frozen=True)
class Scores:
    """How schedules of programs that nothing was learnt from are ordered, before the training and after it.

    Attributes:
        before, after: by the weights that it began with, the SDK's for the profile or else Halide's, and by the
            trained ones.
        nests_before, nests_after: by loop nests alone, with what comes with the SDK and with what was learnt: the share
            of pairs in order, and the best of the first 8 over the best of all.
        search_gain: how many times as fast the best schedules are that searches find with the trained weights; None
            where these order no more pairs, or it was not tried to the end.
    """

    before: RankingScores
    after: RankingScores
    nests_before: tuple[float, float] | None = None
    nests_after: tuple[float, float] | None = None
    search_gain: float | None = None


@dataclass(frozen=True)
class Counts:
    """What there is to learn from, and what to judge by."""

    programs: int
    schedules: int
    judging_programs: int
    judging_schedules: int


@dataclass(frozen=True)
class TrainedWeights:
    """Weights for a profile, from random programs.

    Attributes:
        folder: the training's.
        weights: the file of the trained weights.
        iterations: how many are over.
        are_better: than those they began with, in order and in searches; only then are they kept by name.
        kept_as: the name under which later runs find them; empty if they are not kept.
        nest_prior: the file of what loop nests say; None if that is no better than what comes with the SDK.
        was_interrupted: the user has stopped it; what was timed of the iteration under way is in the folder.
    """

    folder: Path
    weights: Path
    iterations: int
    counts: Counts
    scores: Scores
    are_better: bool
    kept_as: str = ""
    nest_prior: Path | None = None
    was_interrupted: bool = False

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        return {
            "folder": str(self.folder),
            "weights": str(self.weights),
            "iterations": self.iterations,
            **asdict(self.counts),
            **asdict(self.scores),
            "are_better": self.are_better,
            "kept_as": self.kept_as,
            "nest_prior": None if self.nest_prior is None else str(self.nest_prior),
            "was_interrupted": self.was_interrupted,
        }


def counts_of(programs: Sequence[RecordedProgram]) -> Counts:
    """How many programs and schedules there are on either side; a schedule of either kind of model counts once."""
    learnt = [program for program in programs if not program.judges]
    judging = [program for program in programs if program.judges]
    return Counts(len(learnt), _schedules(learnt), len(judging), _schedules(judging))


def _schedules(programs: Sequence[RecordedProgram]) -> int:
    return sum(program.timed for program in programs)
