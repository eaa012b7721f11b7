"""What a run's model of loop nests begins with: what random programs teach, and what the history has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from halide_autotune.autotune_loop.events import Listener, Notice
from halide_autotune.autotune_loop.history.history import NestLimits
from halide_autotune.autotune_loop.history.known_schedule import threads_text
from halide_autotune.autotune_loop.lowered.features import features_of_nest
from halide_autotune.autotune_loop.lowered.lowered_file import unpack_lowered
from halide_autotune.autotune_loop.search.known.histories import HistorySource, nests_of
from halide_autotune.autotune_loop.search.models.model import OF_NESTS
from halide_autotune.autotune_loop.search.models.nest_prior import (
    NestPrior,
    RecordedPipeline,
    learnt_prior,
    read_prior,
    write_prior,
)
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.targets.errors import GeneratorError, WeightsError

_FILE = "nest_prior.npz"
# Fitting takes time with the third power of all, and what is usual for a pipeline cannot be told from a few.
LIMITS = NestLimits(most_pipelines=12, most_each=40, fewest_each=16)


def prior_of_run(
    store: RunStore, learnt: Path | None, histories: Sequence[HistorySource], listen: Listener
) -> NestPrior | None:
    """What other pipelines say of loop nests; the run's folder keeps it, so that a resumed run has the same.

    Args:
        learnt: the file of what was learnt for such devices; None takes what comes with the SDK.
        histories: that are asked.

    Returns:
        None where schedules are not lowered.
    """
    if store.record.spec.options.search.model not in OF_NESTS:
        return None
    kept = store.folder / _FILE
    if kept.is_file():
        return _learnt(kept, listen)
    prior = _with_histories(_learnt(learnt, listen), store, histories, listen)
    try:
        if prior is None or (learnt is None and not histories):
            return prior
        # Also where the histories have nothing: they will have this run's. The file's numbers are rounded.
        write_prior(prior, kept)
        return read_prior(kept)
    except WeightsError as error:
        listen(Notice(f"{error} This run goes on without it.", warning=True))
        return read_prior()


def _learnt(file: Path | None, listen: Listener) -> NestPrior | None:
    """What a file says; what comes with the SDK where it cannot be used."""
    try:
        return learnt_prior(file)
    except WeightsError as error:
        listen(Notice(f"{error} This run goes on with what comes with the SDK.", warning=True))
        return learnt_prior(None)


def _with_histories(
    first: NestPrior | None, store: RunStore, histories: Sequence[HistorySource], listen: Listener
) -> NestPrior | None:
    """The same, and what other runs have timed."""
    spec = store.record.spec
    if first is None or not histories:
        return first
    found = nests_of(histories, spec.profile.halide_target, threads_text(spec.parallelism), LIMITS, listen)
    recorded = [_recorded(group, spec.parallelism) for group in found]
    pipelines = [each for each in recorded if len(each[0]) >= LIMITS.fewest_each]
    if not pipelines:
        return first
    count = sum(len(nests) for nests, _ in pipelines)
    of = "one pipeline" if len(pipelines) == 1 else f"{len(pipelines)} pipelines"
    listen(Notice(f"The model of loop nests begins with {count} schedules of {of} of earlier runs too."))
    return first.with_pipelines(pipelines)


def _recorded(group: list[tuple[bytes, float]], cores: int) -> RecordedPipeline:
    """What is damaged, or of another version, is left out."""
    nests, times_ms = [], []
    for content, time_ms in group:
        try:
            features = features_of_nest(unpack_lowered(content, "a history"), cores)
        except (GeneratorError, ArithmeticError, ValueError):  # anybody may have written it
            continue
        if all(map(math.isfinite, features)):
            nests.append(features)
            times_ms.append(time_ms)
    return nests, times_ms
