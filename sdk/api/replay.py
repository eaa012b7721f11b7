"""`sdk.replay`: another strategy on a recorded run, without a device."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from autotune_loop.report.replay import Replay, ReplayedRound, ReplayRequest
from autotune_loop.report.replay import replay as replay_request
from autotune_loop.specification.tune_request import LearningOptions, SamplingOptions
from sdk.select.named_weights import find_weights
from sdk.settings import Settings, read_settings
from targets.process.stop_signal import StopSignal


def replay(
    run: str | Path,
    *,
    sampling: SamplingOptions | None = None,
    learning: LearningOptions | None = None,
    rounds: int = 100,
    weights: str | Path | None = None,
    listen: Callable[[ReplayedRound], None] = lambda done: None,
    stop: StopSignal | None = None,
    settings: Settings | None = None,
) -> list[Replay]:
    """Go through a recorded run again: choose, look up, learn; one result for each argument set.

    Args:
        run: the folder of a run.
        rounds: at most so many; it ends when every schedule has been looked up.
        weights: a registered name, a `.weights` file or `baseline`, to start from; None takes the run's own.
        listen: called after every round.

    Raises:
        SdkError: one of its children, for everything that a user can fix.
    """
    settings = settings or read_settings()
    with tempfile.TemporaryDirectory(prefix="sdk-replay-") as scratch:
        request = ReplayRequest(
            folder=Path(run),
            sampling=sampling or SamplingOptions(),
            learning=learning or LearningOptions(),
            rounds=rounds,
            weights=None if weights is None else find_weights(str(weights), settings).weights,
            environment=settings.environment,
            scratch=Path(scratch),
        )
        return replay_request(request, listen, stop or StopSignal())
