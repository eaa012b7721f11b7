"""Replaying a recorded run with another strategy, without a device."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from halide_autotune.autotune_loop.report.replay import Replay, ReplayedRound, ReplayRequest
from halide_autotune.autotune_loop.report.replay import replay as replay_request
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.sdk.select.named_weights import find_weights
from halide_autotune.sdk.settings import Settings, read_settings
from halide_autotune.targets.process.scratch_folder import scratch_folder
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.values.options import check_options


def replay(
    run: str | Path,
    *,
    options: RunOptions | None = None,
    listen: Callable[[ReplayedRound], None] = lambda done: None,
    stop: StopSignal | None = None,
    settings: Settings | None = None,
) -> list[Replay]:
    """Go through a recorded run again: choose, look up, learn; one result for each argument set.

    Args:
        run: the folder of a run.
        options: those that say how schedules are chosen and learnt from. There are at most so many rounds; it ends
            when every schedule has been looked up. Without weights it starts from the run's own.
        listen: called after every round.

    Raises:
        SdkError: one of its children, for everything that a user can fix.
    """
    settings = settings or read_settings()
    options = check_options(options or RunOptions())
    weights = options.learn.weights
    with scratch_folder("replay") as scratch:
        request = ReplayRequest(
            folder=Path(run),
            options=options,
            weights=None if weights is None else find_weights(weights, settings).weights,
            environment=settings.environment,
            scratch=scratch,
        )
        return replay_request(request, listen, stop or StopSignal())
