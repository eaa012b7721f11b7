"""Which points of the search space are sampled, all derived from the run's seed."""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Iterator
from pathlib import Path

from halide_autotune.autotune_loop.candidate import Origin, SearchPoint

FULL_BEAM_SIZE = 32
_OTHER_STARTS = 6
NO_DROPOUT = 100
# Halide's loop uses 1 alone. Dropout repeats itself on small pipelines and strays far from the model's optimum on
# large ones; a spread of both levels and noise on the weights gives schedules that are different and still good.
_DROPOUT_LEVELS = (1, 1, 5, 20, 50)
_NOISE_LEVELS = (0.0, 0.05, 0.15, 0.4)


def full_beam_point(seed: int, weights_path: Path) -> SearchPoint:
    """The autoscheduler's full beam search, which a user gets without tuning."""
    return SearchPoint(Origin.FULL_BEAM, seed, FULL_BEAM_SIZE, NO_DROPOUT, weights_path)


def greedy_point(seed: int, weights_path: Path) -> SearchPoint:
    """A beam of one without dropout: the cheap stand-in for a full search that failed."""
    return SearchPoint(Origin.GREEDY, seed, 1, NO_DROPOUT, weights_path)


def other_points(run_seed: int, task_index: int, weights_path: Path) -> list[SearchPoint]:
    """Other starts than the greedy search, for a pipeline where that came to a dead end; the dearest one last."""
    points = itertools.islice(random_points(run_seed, 0, task_index, weights_path), _OTHER_STARTS)
    return [*points, full_beam_point(run_seed, weights_path)]


def random_points(run_seed: int, round_index: int, task_index: int, weights_path: Path) -> Iterator[SearchPoint]:
    """An endless stream of random points, the same for the same arguments."""
    text = f"{run_seed}/{round_index}/{task_index}".encode()
    source = random.Random(int.from_bytes(hashlib.sha256(text).digest()[:8], "little"))
    while True:
        yield SearchPoint(
            origin=Origin.RANDOM,
            seed=source.randrange(1, 2**31),
            beam_size=1,
            random_dropout=source.choice(_DROPOUT_LEVELS),
            weights_path=weights_path,
            weights_noise=source.choice(_NOISE_LEVELS),
        )
