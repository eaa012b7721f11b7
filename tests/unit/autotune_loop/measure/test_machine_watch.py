"""When a machine is too disturbed to time on, what is told of that, and how long a run waits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from halide_autotune.autotune_loop.measure.machine_watch import (
    Cause,
    MachineWatch,
    News,
    causes_at_rest,
    causes_while_timing,
    quiet_patience_s,
)
from halide_autotune.devices.device import Clock
from halide_autotune.devices.timing.machine_signs import BusyProcess, MachineSigns, Surroundings
from halide_autotune.devices.timing.measurement import Beside, Measurement

# Two cores for half a second, one of them ours.
QUIET = MachineSigns(0.5, 2, 0.5, 0.5, 0.0, 0.0, 2.0e9, 2.0e9, None)
CROWDED = replace(QUIET, busy_s=0.9)
STOLEN = replace(QUIET, stolen_s=0.1)
HOT = replace(QUIET, hz=1.2e9, hottest_c=91.0)
COMPILER = BusyProcess(4711, "cc1plus", False, 0.4)


def timing(
    machine: MachineSigns | None = QUIET, *, disturbed: int = 0, beside_disturbed: int | None = None
) -> Measurement:
    """Ten repetitions, the first of which are disturbed; and the last of those of a kernel beside it."""
    marks = tuple(index < disturbed for index in range(10))
    times_s, beside = (1e-3,) * 10, None
    if beside_disturbed is not None:
        other = tuple(index >= 10 - beside_disturbed for index in range(10))
        beside = Beside("yardstick", times_s, other, marks)
    return Measurement("f", "pi", Clock.WALL, times_s, "time", True, disturbed=marks, beside=beside, machine=machine)


@pytest.mark.parametrize(
    ("one", "causes"),
    [
        (timing(), set()),
        (timing(disturbed=10), set()),
        (timing(CROWDED), set()),
        (timing(CROWDED, disturbed=5), set()),
        (timing(CROWDED, disturbed=6), {Cause.OTHERS}),
        (timing(CROWDED, disturbed=3, beside_disturbed=3), {Cause.OTHERS}),
        (timing(replace(CROWDED, waiting_s=0.2)), {Cause.OTHERS}),
        (timing(replace(CROWDED, waiting_s=0.2, has_priority=True)), set()),
        (timing(replace(QUIET, waiting_s=0.2)), set()),
        (timing(replace(QUIET, busy_s=None, waiting_s=0.5), disturbed=10), set()),
        (timing(STOLEN), {Cause.HYPERVISOR}),
        (timing(replace(STOLEN, stolen_s=0.05)), set()),
        (timing(HOT), {Cause.HEAT}),
        (timing(replace(HOT, hottest_c=60.0)), set()),
        (timing(replace(HOT, hz=1.9e9)), set()),
        (timing(None, disturbed=10), set()),
    ],
)
def test_the_rule_is_about_the_last_timings(one: Measurement, causes: set[Cause]) -> None:
    assert causes_while_timing([one] * 4) == causes
    assert causes_while_timing([one] * 3) == set(), "too few to tell"


def test_short_timings_tell_nothing_before_there_are_many() -> None:
    short = replace(CROWDED, duration_s=0.1, busy_s=0.2, own_s=0.1)
    assert causes_while_timing([timing(short, disturbed=10)] * 4) == set()
    assert causes_while_timing([timing(short, disturbed=10)] * 6) == {Cause.OTHERS}


def test_others_are_all_who_have_a_core_but_us() -> None:
    assert CROWDED.others_share == pytest.approx(0.4)
    assert replace(QUIET, own_s=0.6).others_share == 0.0, "clocks of processes and of cores differ a little"
    assert replace(QUIET, cores=0).others_share == 0.0 == replace(QUIET, busy_s=None).others_share
    assert causes_at_rest(CROWDED) == {Cause.OTHERS}
    assert causes_at_rest(HOT) == {Cause.HEAT}


def test_a_run_does_not_wait_for_much_of_its_budget() -> None:
    assert quiet_patience_s(600.0, None) == 600.0
    assert quiet_patience_s(600.0, 300.0) == 30.0
    assert quiet_patience_s(5.0, 300.0) == 5.0
    assert quiet_patience_s(600.0, None, 5.0) == 5.0
    assert quiet_patience_s(5.0, 300.0, 600.0) == 30.0


def crowded_watch(patience_s: float = 600.0) -> MachineWatch:
    watch = MachineWatch("pi", patience_s)
    crowd(watch)
    return watch


def waits(watch: MachineWatch) -> bool:
    return watch.is_waiting


def crowd(watch: MachineWatch) -> None:
    for _ in range(8):
        watch.add(timing(CROWDED, disturbed=10))


def test_the_message_names_who_disturbs_and_comes_once() -> None:
    watch = crowded_watch()
    assert watch.begins_look(0.0) and not watch.begins_look(1.0), "one look at a time"
    (news,) = watch.looked(Surroundings(CROWDED, COMPILER), 2.0)
    assert news == News(
        "pi is too disturbed to time on: others use 40% of its cores, most of all the process cc1plus of another user"
        " (pid 4711). The run waits up to 10 min for it to become quiet.",
        is_warning=True,
    )
    assert waits(watch)
    assert not watch.begins_look(3.0) and watch.begins_look(7.0)
    assert watch.looked(Surroundings(CROWDED, replace(COMPILER, pid=4712)), 8.0) == []
    assert watch.begins_look(13.0)
    assert watch.looked(Surroundings(QUIET, None), 14.0) == [News("pi is quiet again after 12 s; the run goes on.")]
    assert not waits(watch)
    crowd(watch)
    assert not watch.begins_look(20.0), "a machine is not looked at all the time"
    assert watch.begins_look(80.0)
    assert watch.looked(Surroundings(CROWDED, COMPILER), 81.0) == [], "that is known"
    assert waits(watch)


def test_another_cause_is_told() -> None:
    watch = crowded_watch()
    assert watch.begins_look(0.0)
    watch.looked(Surroundings(CROWDED, None), 0.0)
    (news,) = watch.looked(Surroundings(HOT, None), 5.0)
    assert news.is_warning and "heat slows it down (1.2 of 2.0 GHz at 91 °C)" in news.text
    (news,) = watch.looked(Surroundings(replace(STOLEN, stolen_s=0.5), None), 10.0)
    assert "its hypervisor takes 50% of its processor time for other machines" in news.text
    assert watch.looked(Surroundings(CROWDED, None), 15.0) == []


@pytest.mark.parametrize(
    ("busiest", "words"),
    [
        (None, "others use 40% of its cores, who cannot be seen from here."),
        (replace(COMPILER, is_own_users=True), "the process cc1plus of your user (pid 4711)."),
    ],
)
def test_who_disturbs(busiest: BusyProcess | None, words: str) -> None:
    watch = crowded_watch()
    assert watch.begins_look(0.0)
    (news,) = watch.looked(Surroundings(CROWDED, busiest), 0.0)
    assert words in news.text


def test_waiting_is_told_now_and_then_and_ends_with_the_patience() -> None:
    watch = crowded_watch(patience_s=100.0)
    told = [news for now_s in range(0, 140, 5) if watch.begins_look(now_s) for news in look(watch, now_s)]
    assert [news.text.partition(": ")[0] for news in told] == [
        "pi is too disturbed to time on",
        "pi is still disturbed after 60 s. The run waits up to 40 s for it to become quiet.",
        "pi is still disturbed after 100 s; the run goes on, and its times are less certain.",
    ]
    assert [news.is_warning for news in told] == [True, False, True]
    assert not waits(watch)


def look(watch: MachineWatch, now_s: float) -> list[News]:
    return watch.looked(Surroundings(CROWDED, COMPILER), now_s)


def test_patience_is_for_the_whole_run() -> None:
    watch = crowded_watch(patience_s=30.0)
    assert watch.begins_look(0.0)
    look(watch, 0.0)
    watch.looked(Surroundings(QUIET, None), 20.0)
    crowd(watch)
    assert watch.begins_look(100.0)
    look(watch, 100.0)
    (news,) = look(watch, 110.0)
    assert news.text == "pi is still disturbed after 10 s; the run goes on, and its times are less certain."


def test_without_patience_the_run_goes_on_and_says_so_once() -> None:
    watch = crowded_watch(patience_s=0.0)
    assert watch.begins_look(0.0)
    (news,) = look(watch, 0.0)
    assert news.text.endswith("(pid 4711). The run goes on, and its times are less certain.")
    crowd(watch)
    assert not waits(watch) and watch.begins_look(100.0) and look(watch, 100.0) == []


def test_others_whom_the_timings_did_not_feel_are_not_waited_for() -> None:
    """The hypervisor took the cores away for a moment; who else computes has less priority than kernels."""
    watch = MachineWatch("pi", 600.0)
    for _ in range(8):
        watch.add(timing(replace(STOLEN, has_priority=True)))
    assert watch.begins_look(0.0)
    assert look(watch, 1.0) == [] and not waits(watch)


def test_what_cannot_be_confirmed_is_not_told() -> None:
    """The run itself disturbed, or what disturbed is gone, or the machine does not answer."""
    for found in (None, Surroundings(QUIET, COMPILER)):
        watch = crowded_watch()
        assert watch.begins_look(0.0)
        assert watch.looked(found, 1.0) == [] and not waits(watch)
        assert not watch.begins_look(2.0)
