"""The picture of a run, in terminals of several sizes."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from halide_autotune.autotune_loop.events import BatchDone, BestImproved, Event, Notice, SampleMeasured
from halide_autotune.sdk.display.display import STOPPING
from halide_autotune.sdk.display.live_display import LiveDisplay
from halide_autotune.sdk.display.live_view import live_view
from halide_autotune.sdk.display.run_progress import RunProgress
from tests.unit.sdk.display.recorded_run import STARTED, progress_after, run_events, started


def picture(progress: RunProgress, width: int = 80, height: int = 24) -> list[str]:
    console = Console(file=io.StringIO(), force_terminal=True, width=width, height=height, color_system=None)
    console.print(live_view(progress, width, height))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def row(lines: list[str], label: str) -> str:
    (found,) = [line for line in lines if line.startswith(f"│ {label:10}")]
    return found.strip("│ ")


def test_everything_is_there() -> None:
    lines = picture(progress_after(run_events()))
    assert "sdk autotune  blur for arm64" in lines[0]
    assert "EMULATED TIME, NOT A DEVICE'S" in row(lines, "device")
    assert row(lines, "folder").endswith("/runs/blur-arm64-1")
    assert "1 of 2, 4 schedules each" in row(lines, "round")
    assert "elapsed 19 s" in row(lines, "round")
    assert "2/8  round 2" in row(lines, "search")
    assert "3/3  round 1" in row(lines, "build")
    assert "1/5  2 schedules in turns" in row(lines, "play-off")
    assert row(lines, "default").endswith("8.000 ms emul")
    assert "4.000 ms emul  2.00 times as fast  one" in row(lines, "best")
    assert "rank correlation 0.50 with the times of round 1" in row(lines, "predicted")
    assert "75 % of pairs in the measured order; new ones rejected with 50 %" in row(lines, "model")
    assert "3 schedules" in row(lines, "timed")
    assert "2 search: timed out, 1 measure: crashed" in row(lines, "failed")
    assert any("out of [memory]" in line for line in lines)
    assert "Ctrl-C" in lines[-1]


def test_the_picture_keeps_its_size_while_a_run_goes_on() -> None:
    events = run_events()
    for size in ((80, 24), (120, 40), (100, 30)):
        heights = {len(picture(progress_after(events[:n]), *size)) for n in range(1, len(events) + 1)}
        assert len(heights) == 1, size
        assert heights.pop() < size[1]


def test_a_tall_terminal_shows_the_rounds() -> None:
    lines = picture(progress_after(run_events()), 120, 40)
    (header,) = [line for line in lines if "fastest emul" in line]
    shown = lines[lines.index(header) + 1].strip("│ ").split()
    assert shown == "1 3 1 4.000 ms 8.000 ms 0.50 16 s".split()


def test_before_the_first_batch() -> None:
    lines = picture(progress_after([STARTED]))
    assert "preparing the reference" in row(lines, "search")
    assert "nothing timed yet" in row(lines, "best")
    assert "left" not in row(lines, "round")


def test_times_below_each_other_have_one_unit() -> None:
    events: list[Event] = [started(clock="wall")]
    for number, best_ms in enumerate((0.2, 0.05)):
        sample = SampleMeasured(number, 0, 1, "evolution", best_ms, 1.0, "wall", 1, 1)
        events += [BestImproved(0, f"batch_{number}_0/1", best_ms, 0.2, "wall"), sample, BatchDone(number, 0, 1, 0, {})]
    lines = picture(progress_after(events), 120, 40)
    assert row(lines, "default").endswith("0.2000 ms") and "0.05000 ms" in row(lines, "best")
    (header,) = [line for line in lines if "fastest" in line]
    first, second = lines[lines.index(header) + 1 : lines.index(header) + 3]
    assert "200.0 us" in first and "50.00 us" in second


@pytest.mark.parametrize(
    ("count", "finishing"),
    [
        (1, "the start"),
        (14, "what is being timed"),
        (16, "the training and the files"),
        (19, "the play-off, turn 2 of 5"),
    ],
)
def test_when_the_time_is_up_it_is_said_what_is_being_finished(count: int, finishing: str) -> None:
    events = run_events()[:count]
    before = progress_after([started(budget_s=60.0), *events[1:]])
    assert "the time is up" not in "".join(picture(before))
    after = progress_after([started(budget_s=60.0), *events[1:]], step_s=61.0)
    assert f"the time is up; finishing {finishing}" in picture(after)[-1]
    assert "left" not in row(picture(after), "round")


def test_a_default_that_leads() -> None:
    lines = picture(progress_after(run_events("wall")[:9]))
    assert row(lines, "best").endswith("8.000 ms  the default is the best so far  one timing")
    assert "wall time" in row(lines, "device")
    assert not any("emulated" in line.lower() for line in lines)


def test_stopping_is_said_in_the_frame() -> None:
    progress = progress_after(run_events())
    progress.add(STOPPING)
    assert "stopping; press Ctrl-C again to stop at once" in picture(progress)[-1]


@pytest.mark.parametrize("height", [24, 40])
def test_argument_sets_have_a_line_each(height: int) -> None:
    events: list[Event] = [started(tasks=12, clock="wall")]
    for argset in range(12):
        events.append(SampleMeasured(0, argset, 0, "full beam search", 8.0, 1.0, "wall", 1, 2))
        events.append(SampleMeasured(0, argset, 1, "random search", 4.0, 1.0, "wall", 2, 2))
        events.append(BestImproved(argset, f"batch_0_{argset}/1", 4.0, 8.0, "wall"))
    lines = picture(progress_after(events), 80, height)
    assert len(lines) < height
    assert row(lines, "set 12").endswith("4.000 ms  2.00 times as fast")


@settings(max_examples=40, deadline=None)
@given(
    width=st.integers(20, 200),
    height=st.integers(5, 60),
    text=st.text(max_size=200),
    count=st.integers(0, 19),
)
def test_no_size_and_no_text_breaks_it(width: int, height: int, text: str, count: int) -> None:
    events = [*run_events()[:count], Notice(text), replace(STARTED, generator=text, run_folder=text)]
    for line in picture(progress_after(events), width, height):
        assert len(line) <= width or not line.isascii()


def test_a_display_draws_and_leaves_only_the_warnings() -> None:
    out = io.StringIO()
    display = LiveDisplay(Console(file=out, force_terminal=True, width=80, height=24))
    display.close()
    display.begin()
    assert "starting" in out.getvalue()
    display.listen(STOPPING)
    for event in run_events():
        display.listen(event)
    display.listen(STOPPING)
    display.close()
    display.close()
    text = out.getvalue()
    assert "sdk autotune" in text
    # The warning's is the last line, without the frame around it.
    assert text.endswith("A greedy one takes its \x1b[0m\n\x1b[33mplace.\x1b[0m\n")
    # The cursor is shown again.
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")
