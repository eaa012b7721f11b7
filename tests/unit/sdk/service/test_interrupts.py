"""Ctrl-C once, twice, passed on twice, and ignored."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator

import pytest

from halide_autotune.sdk.service import interrupts
from halide_autotune.sdk.service.interrupts import end_in_order, stop_on_interrupt
from halide_autotune.targets.process.stop_signal import StopSignal


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """A job in the background of a script has SIGINT ignored: tests of it must not depend on who starts them."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    kept = [signal.signal(number, signal.default_int_handler) for number in numbers]
    yield
    for number, handler in zip(numbers, kept, strict=True):
        signal.signal(number, handler)


class Announcement:
    """Counts, and tells which thread said it."""

    def __init__(self) -> None:
        self.threads: list[str] = []

    def __call__(self) -> None:
        self.threads.append(threading.current_thread().name)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_stops_and_is_announced_elsewhere(number: signal.Signals) -> None:
    stop, announcement = StopSignal(), Announcement()
    with stop_on_interrupt(stop, announcement):
        signal.raise_signal(number)
        assert stop.wait(60.0)
    assert announcement.threads == ["interrupts"]
    assert signal.getsignal(number) is signal.default_int_handler


def test_the_second_interrupts_at_once() -> None:
    stop, announcement = StopSignal(), Announcement()
    with pytest.raises(KeyboardInterrupt), stop_on_interrupt(stop, announcement):
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.35)
        signal.raise_signal(signal.SIGTERM)
    assert stop.is_set()
    assert len(announcement.threads) == 1


def test_one_press_that_arrives_twice_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "_SAME_PRESS_S", 60.0)
    stop, announcement = StopSignal(), Announcement()
    with stop_on_interrupt(stop, announcement):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        assert stop.wait(60.0)
    assert len(announcement.threads) == 1


def test_nothing_happens_without_a_signal() -> None:
    stop, announcement = StopSignal(), Announcement()
    with stop_on_interrupt(stop, announcement):
        pass
    assert not stop.is_set()
    assert announcement.threads == []


def test_ignored_signals_stay_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    stop = StopSignal()
    with stop_on_interrupt(stop, Announcement()):
        signal.raise_signal(signal.SIGHUP)
    assert not stop.is_set()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_end_a_command_as_ctrl_c_does(number: signal.Signals) -> None:
    signal.signal(number, signal.SIG_DFL)
    with pytest.raises(KeyboardInterrupt), end_in_order():
        signal.raise_signal(number)
    assert signal.getsignal(number) == signal.SIG_DFL


def test_signals_that_are_ignored_stay_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with end_in_order():
        signal.raise_signal(signal.SIGHUP)
