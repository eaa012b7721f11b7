"""What the batches of a run have chosen and did not wait for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from halide_autotune.autotune_loop.candidate import Candidate
from halide_autotune.autotune_loop.search.code_builds import Build


@dataclass
class LeftCandidates:
    """Candidates that the next batch of their task begins with, and their builds if these are under way."""

    _candidates: dict[int, list[Candidate]] = field(default_factory=dict)
    _builds: dict[str, Build] = field(default_factory=dict)

    def add(self, candidates: Sequence[Candidate], submitted: Mapping[str, Build]) -> None:
        """Leave candidates to later batches.

        Args:
            submitted: builds by symbol, of these and others; those that were cancelled are to be begun again.
        """
        for one in candidates:
            self._candidates.setdefault(one.task_index, []).append(one)
            build = submitted.get(one.symbol)
            if build is not None and not build.cancelled():
                self._builds[one.symbol] = build

    def take(self, task_index: int, count: int) -> list[Candidate]:
        """Up to `count` of a task's, the first ones first."""
        left = self._candidates.get(task_index, [])
        self._candidates[task_index] = left[count:]
        return left[:count]

    def take_build(self, symbol: str) -> Build | None:
        """A candidate's build that an earlier batch has begun."""
        return self._builds.pop(symbol, None)
