"""A task that is given up is not waited for."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from halide_autotune.autotune_loop.search.waiting import first_done, result_unless


def test_a_result_that_is_there_counts_even_if_it_is_late() -> None:
    future: Future[int] = Future()
    future.set_result(3)
    assert result_unless(future, lambda: True) == 3


def test_a_task_that_has_not_begun_is_cancelled() -> None:
    future: Future[int] = Future()
    assert result_unless(future, lambda: True) is None
    assert future.cancelled()


def test_it_is_waited_for_until_it_is_given_up() -> None:
    future: Future[int] = Future()
    future.set_running_or_notify_cancel()
    looks = iter([False, False, True])
    assert result_unless(future, lambda: next(looks)) is None
    future.set_result(5)
    assert result_unless(future, lambda: False) == 5


def test_what_it_raises_is_raised() -> None:
    future: Future[int] = Future()
    future.set_exception(TimeoutError("its own"))
    with pytest.raises(TimeoutError, match="its own"):
        result_unless(future, lambda: False)


def test_the_first_of_several_that_have_ended_counts() -> None:
    one, two, three = (Future[int]() for _ in range(3))
    two.set_result(2)
    three.set_result(3)
    assert first_done([one, two, three], lambda: True) is two
    assert first_done([one], lambda: True) is None and not one.cancelled()
    assert first_done([], lambda: False) is None


def test_any_of_several_is_waited_for() -> None:
    one, two = Future[int](), Future[int]()

    def look() -> bool:
        two.set_result(2)
        return False

    assert first_done([one, two], look) is two
