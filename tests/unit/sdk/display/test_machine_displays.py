"""JSON lines, the quiet display, and which display is chosen."""

from __future__ import annotations

import json
import sys

import pytest

from halide_autotune.autotune_loop.events import Event, event_to_dict
from halide_autotune.autotune_loop.run.result import TuneResult
from halide_autotune.sdk.display.display import STOPPING, FollowUp, GuardedDisplay, choose_display
from halide_autotune.sdk.display.json_display import JsonDisplay
from halide_autotune.sdk.display.live_display import LiveDisplay
from halide_autotune.sdk.display.plain_display import PlainDisplay
from halide_autotune.targets.errors import SdkError, UsageError
from halide_autotune.targets.process.stop_signal import StopSignal
from tests.unit.sdk.display.recorded_run import RESULT, STARTED, run_events

NEXT: FollowUp = {}


def test_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    display = JsonDisplay(result_only=False)
    for event in run_events():
        display.listen(event)
    display.listen(STOPPING)
    display.close()
    display.finish(RESULT, NEXT)
    *events, result = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert events[:-1] == [json.loads(json.dumps(event_to_dict(event))) for event in run_events()]
    assert events[-1]["event"] == "notice"
    assert "press Ctrl-C again" in events[-1]["text"]
    assert result["event"] == "result"
    assert result["outcome"] == "finished"
    assert result["tuned"][0]["speed_up"] == 2.05
    assert result["tuned"][0]["header"] == "/runs/blur-arm64-1/samples/best.blur.schedule.h"


def test_the_json_result_alone(capsys: pytest.CaptureFixture[str]) -> None:
    display = JsonDisplay(result_only=True)
    display.listen(STARTED)
    display.listen(STOPPING)
    display.finish(RESULT, NEXT)
    assert json.loads(capsys.readouterr().out)["event"] == "result"


def test_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    display = PlainDisplay(quiet=True)
    for event in run_events():
        display.listen(event)
    display.listen(STOPPING)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert [line.split(":")[0] for line in captured.err.splitlines()] == [
        "warning",
        "stopping; press Ctrl-C again to stop at once",
    ]
    display.close()
    display.finish(RESULT, NEXT)
    assert "2.050 times as fast" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("as_json", "quiet", "plain", "kind"),
    [
        (True, False, False, JsonDisplay),
        (True, True, False, JsonDisplay),
        (False, True, False, PlainDisplay),
        (False, False, True, PlainDisplay),
        (False, False, False, PlainDisplay),
    ],
)
def test_the_display_that_was_asked_for(as_json: bool, quiet: bool, plain: bool, kind: type) -> None:
    assert type(choose_display(as_json=as_json, quiet=quiet, plain=plain)) is kind


@pytest.mark.parametrize(("terminal", "kind"), [("xterm", LiveDisplay), ("dumb", PlainDisplay)])
def test_on_a_terminal(terminal: str, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", terminal)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert type(choose_display(as_json=False, quiet=False, plain=False)) is kind
    assert type(choose_display(as_json=False, quiet=False, plain=True)) is PlainDisplay


def test_what_excludes_each_other() -> None:
    with pytest.raises(UsageError, match="--plain and --quiet"):
        choose_display(as_json=False, quiet=True, plain=True)


class Broken:
    """A display whose output has gone."""

    def __init__(self, error: OSError) -> None:
        self.error = error
        self.calls = 0

    def begin(self) -> None:
        self.calls += 1
        raise self.error

    def listen(self, event: Event) -> None:
        self.calls += 1
        raise self.error

    def close(self) -> None:
        raise self.error

    def finish(self, result: TuneResult, follow_up: FollowUp) -> None:
        raise AssertionError("not reached")


def test_a_reader_that_goes_away_ends_the_run_in_order() -> None:
    stop, broken = StopSignal(), Broken(BrokenPipeError())
    guarded = GuardedDisplay(broken, stop)
    guarded.raise_trouble()
    guarded.begin()
    assert stop.is_set()
    guarded.listen(STARTED)
    guarded.listen(STOPPING)
    guarded.close()
    assert broken.calls == 1
    with pytest.raises(BrokenPipeError):
        guarded.raise_trouble()


def test_a_full_disk_is_told_in_one_message() -> None:
    guarded = GuardedDisplay(Broken(OSError(28, "No space left on device")), StopSignal())
    guarded.listen(STOPPING)
    with pytest.raises(SdkError, match="cannot be written: No space left on device.*--resume"):
        guarded.raise_trouble()
