"""Which task gets the next batch, on curves of which it is known who gains."""

from __future__ import annotations

import math
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from halide_autotune.autotune_loop.run.task_scheduler import TaskHistory, next_task

Curve = Callable[[int], float]


def flat(batch: int) -> float:
    return 10.0


def falling(batch: int) -> float:
    return 10.0 * 0.8**batch + 0.1


def soon_done(batch: int) -> float:
    return 10.0 * 0.3 ** min(batch, 2)


def played(curves: list[Curve], batches: int, batch_s: list[float] | None = None) -> list[int]:
    """Who got each batch, each one's result known before the next choice but one, as in a run."""
    histories = [TaskHistory() for _ in curves]
    chosen: list[int] = []

    def end(place: int) -> None:
        history = histories[place]
        history.add(curves[place](len(history.best_ms)), (batch_s or [1.0] * len(curves))[place])

    while (place := next_task(histories, batches)) is not None:
        histories[place].started += 1
        chosen.append(place)
        if len(chosen) > 1:
            end(chosen[-2])
    return chosen


def test_all_get_a_first_batch_first() -> None:
    assert played([flat, falling, soon_done], 3) == [0, 1, 2]
    assert len(played([flat, falling, soon_done], 30)) == 30


def test_the_budget_goes_to_the_one_that_still_gains() -> None:
    chosen = played([flat, falling, soon_done], 40)
    counts = [chosen.count(place) for place in range(3)]
    assert counts[1] > 2 * max(counts[0], counts[2])
    assert min(counts) >= math.floor(0.25 * 40 / 3), "none starves"


def test_a_gain_that_takes_longer_is_worth_less() -> None:
    chosen = played([falling, falling], 30, batch_s=[1.0, 5.0])
    assert chosen.count(0) > 1.5 * chosen.count(1)


def test_equals_share() -> None:
    chosen = played([flat, flat, flat], 30)
    assert [chosen.count(place) for place in range(3)] == [10, 10, 10]
    assert played([falling], 5) == [0] * 5


def test_an_exhausted_task_gets_no_more_and_a_failed_batch_is_no_gain() -> None:
    histories = [TaskHistory(started=1, is_exhausted=True), TaskHistory(started=3)]
    histories[1].add(math.inf, 1.0)
    assert next_task(histories, 100) == 1 and math.isfinite(histories[1].gain_per_s)
    histories[1].is_exhausted = True
    assert next_task(histories, 100) is None


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.floats(0.01, 1e4) | st.just(math.inf), min_size=1, max_size=8), min_size=1, max_size=6),
    st.floats(0.0, 100.0),
)
def test_whatever_the_curves_all_batches_are_given_out(curves: list[list[float]], batch_s: float) -> None:
    def curve(times: list[float]) -> Curve:
        return lambda batch: times[min(batch, len(times) - 1)]

    chosen = played([curve(times) for times in curves], 25, [batch_s] * len(curves))
    assert len(chosen) == 25 and set(chosen) == set(range(len(curves)))


def test_what_was_left_over_of_a_round_is_a_batch_more() -> None:
    """A resumed run finishes the round that it had begun, which had ended as a batch."""
    finished = TaskHistory([math.inf, 2.0], [10.0, 1.0], started=1)
    assert next_task([finished], 2) == 0 and finished.gain_per_s > 0
    assert next_task([finished], 1) is None


def test_what_is_called_most_gets_the_most_where_that_is_known() -> None:
    """A network's time is that of all calls: a tenth of what takes long is worth more than a half of what does not."""
    histories = [TaskHistory([10.0, 5.0], [1.0, 1.0], started=2, calls=1.0) for _ in range(2)]
    assert next_task(histories, 99) == 0
    histories[1].calls = 3.0
    assert next_task(histories, 99) == 1
    histories[0].best_ms = [100.0, 90.0]
    assert next_task(histories, 99) == 0, "a tenth of 90 ms a second, not a half of 3 times 5"
    histories[1].calls = None
    histories[0].best_ms, histories[1].best_ms = [100.0, 90.0], [10.0, 5.0]
    assert next_task(histories, 99) == 1, "where nobody says, what gains most relative to its own time"
