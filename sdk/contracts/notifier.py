"""What a program that is told of the end of a run must keep to."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from halide_autotune.autotune_loop.events import RunLength, RunStarted, ignore
from halide_autotune.autotune_loop.run.result import Outcome, RunTotals, TunedSchedule, TuneResult
from halide_autotune.autotune_loop.store.published import Published, ScheduleTime, SpeedUp
from halide_autotune.sdk.contracts.require import require
from halide_autotune.sdk.service.notify.program import ProgramNotifier
from halide_autotune.sdk.service.notify.run_end import RunEnd
from halide_autotune.sdk.settings import read_settings
from halide_autotune.targets.errors import DeviceError

_FOLDER = Path("/tuned/blur-arm64-1")


def check_notifier(*command: str | Path) -> None:
    """Check that a program takes every document that it may get, and ends in time with exit code 0.

    Args:
        command: its path, and arguments.

    Raises:
        AssertionError: it does not; the message has what it said.
    """
    notifier = ProgramNotifier(tuple(map(str, command)), read_settings().environment)
    for kind, document in documents().items():
        trouble = notifier.send(document)
        require(not trouble, f"The program must take what it is told of {kind}", trouble)


def documents() -> dict[str, str]:
    """One document of each kind, as runs send them: JSON texts by what they are of."""
    kept = _Kept()
    end = RunEnd([kept], warn=lambda text: None)
    end.watching(ignore)(
        RunStarted("blur", "arm64", "pi5", "wall", 4, str(_FOLDER), RunLength(16, 100, 1, 600.0), False)
    )
    winner = TunedSchedule(
        parameters={},
        generator="blur",
        default_description="Adams2019's",
        header=_FOLDER / "samples" / "best.blur.schedule.h",
        published=Published(
            "batch_3_0/7",
            "blur_r3_a0_s7",
            confirmed=True,
            reason="faster",
            message="It is 1.84 times as fast.",
            tuned=ScheduleTime(4.0, 0.1),
            default=ScheduleTime(7.4, 0.1),
            speed_up=SpeedUp(1.84, "default", 1.8, 1.9),
        ),
    )
    end.finished(_result(Outcome.FINISHED, winner), {})
    end.finished(_result(Outcome.INTERRUPTED, TunedSchedule({}, "blur", "Adams2019's")), {})
    end.failed(DeviceError("pi5 cannot be reached.", next_step="Switch it on."))
    return dict(zip(("a winner", "a run without a winner", "a run that failed"), kept.documents, strict=True))


def _result(outcome: Outcome, tuned: TunedSchedule) -> TuneResult:
    return TuneResult(
        outcome=outcome,
        generator="blur",
        target="arm64",
        device="pi5",
        clock="wall",
        tuned=(tuned,),
        run_folder=_FOLDER,
        weights=_FOLDER / "samples" / "updated.weights",
        totals=RunTotals(4, 60, {"build: timed out": 1}, 0, {"build": 200.0}, 600.0),
    )


@dataclass
class _Kept:
    documents: list[str] = field(default_factory=list)
    label: str = "kept"

    def send(self, document: str) -> str:
        self.documents.append(document)
        return ""
