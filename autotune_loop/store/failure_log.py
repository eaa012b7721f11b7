"""Failures of candidates, as the database and the listener are told of them."""

from __future__ import annotations

from halide_autotune.autotune_loop.candidate import Candidate, SearchFailure
from halide_autotune.autotune_loop.events import Listener, SampleFailed
from halide_autotune.autotune_loop.store.run_database import NOT_DONE, RunDatabase


class FailureLog:
    """Records failures of candidates in the database, and tells the listener."""

    def __init__(self, database: RunDatabase, listen: Listener) -> None:
        self._database = database
        self._listen = listen

    def candidate_failed(self, candidate: Candidate, stage: str, reason: str, message: str, log: str = "") -> None:
        """A candidate failed; `stage` is 'build', 'link', 'measure' or, once it has a time, 'race'."""
        place = (candidate.round_index, candidate.task_index, candidate.sample_index)
        failed = SampleFailed(*place, stage, reason, message)
        self._database.add_failure(failed, log, symbol=candidate.symbol, seed=candidate.seed)
        if reason != NOT_DONE:
            self._listen(failed)

    def search_failed(
        self, round_index: int, task_index: int, result: SearchFailure, symbol: str | None = None
    ) -> None:
        """A search found no schedule; `symbol` is for the one whose schedule was to be a certain candidate."""
        failure = result.failure
        failed = SampleFailed(round_index, task_index, None, "search", failure.reason.value, failure.message)
        self._database.add_failure(failed, failure.log, symbol=symbol, seed=result.point.seed)
        self._listen(failed)
