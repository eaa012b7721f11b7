"""Where every failure goes: the database, and whoever watches."""

from __future__ import annotations

from autotune_loop.candidate import Candidate, SearchFailure
from autotune_loop.events import Listener, SampleFailed
from autotune_loop.store.run_database import NOT_DONE, RunDatabase


class FailureLog:
    """Records failures of candidates."""

    def __init__(self, database: RunDatabase, listen: Listener) -> None:
        self._database = database
        self._listen = listen

    def candidate_failed(self, candidate: Candidate, stage: str, reason: str, message: str, log: str = "") -> None:
        """A chosen schedule has no time; `stage` is 'build', 'link' or 'measure'."""
        self._database.add_failure(
            stage,
            reason,
            message,
            log,
            round_index=candidate.round_index,
            task_index=candidate.task_index,
            symbol=candidate.symbol,
            seed=candidate.point.seed,
        )
        place = (candidate.round_index, candidate.task_index, candidate.sample_index)
        self._tell(SampleFailed(*place, stage, reason, message))

    def search_failed(self, round_index: int, task_index: int, result: SearchFailure) -> None:
        """A search gave no schedule."""
        failure = result.failure
        self._database.add_failure(
            "search",
            failure.reason.value,
            failure.message,
            failure.log,
            round_index=round_index,
            task_index=task_index,
            seed=result.point.seed,
        )
        self._tell(SampleFailed(round_index, task_index, None, "search", failure.reason.value, failure.message))

    def _tell(self, event: SampleFailed) -> None:
        if event.reason != NOT_DONE:
            self._listen(event)
