"""Which schedules are tried at a size, before a size gets a schedule of its own."""

from __future__ import annotations

from autotune_loop.run.decision.size_play_offs import may_be_faster_at
from autotune_loop.run.timed import Timed, fastest_at_sizes


def timed(name: str, small_ms: float, large_ms: float, log_error: float = 0.0) -> Timed:
    mean_ms = (small_ms * large_ms) ** 0.5
    by_size_ms = {"small": small_ms, "large": large_ms}
    return Timed(name, name, "random search", mean_ms, 0.1, False, "pi", log_error=log_error, by_size_ms=by_size_ms)


WINNER = timed("winner", 1.0, 10.0)


def test_what_is_much_faster_at_a_size_is_tried_there() -> None:
    others = [
        timed("small", 0.8, 20.0),
        timed("smaller", 0.7, 30.0),
        timed("large", 3.0, 9.5),
        timed("slow", 5.0, 50.0),
    ]
    everything = [WINNER, *others]
    assert [one.symbol for one in may_be_faster_at("small", WINNER, everything)] == ["smaller", "small"]
    assert may_be_faster_at("large", WINNER, everything) == []
    assert fastest_at_sizes(everything, 1) == {"smaller", "large"}


def test_an_error_of_the_times_lets_more_be_tried() -> None:
    assert may_be_faster_at("large", WINNER, [timed("large", 3.0, 9.5)]) == []
    assert may_be_faster_at("large", WINNER, [timed("large", 3.0, 9.5, log_error=0.05)])


def test_at_most_three_are_tried() -> None:
    many = [timed(str(index), 0.5 + 0.01 * index, 20.0) for index in range(6)]
    assert [one.symbol for one in may_be_faster_at("small", WINNER, many)] == ["0", "1", "2"]


def test_schedules_without_times_at_the_sizes_are_left_out() -> None:
    alone = Timed("alone", "alone", "random search", 0.1, 0.1, False, "pi")
    assert may_be_faster_at("small", WINNER, [alone]) == [] == may_be_faster_at("small", alone, [WINNER])
