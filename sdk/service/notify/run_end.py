"""What is told of a run that has ended, and to whom."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from halide_autotune.autotune_loop.events import Event, Listener, RunStarted
from halide_autotune.autotune_loop.run.result import TunedSchedule, TuneResult
from halide_autotune.sdk.display.display import FollowUp
from halide_autotune.sdk.display.json_display import result_document
from halide_autotune.sdk.service.notify.notifier import Notifier
from halide_autotune.targets.errors import SdkError


@dataclass
class RunEnd:
    """Tells notifiers how a run has ended. One that fails is a warning and changes nothing else.

    Attributes:
        warn: shows a warning to the user.
    """

    notifiers: Sequence[Notifier]
    warn: Callable[[str], None]
    _started: RunStarted | None = field(default=None, init=False)

    def watching(self, listen: Listener) -> Listener:
        """The listener, which also notes that the run has begun."""

        def heard(event: Event) -> None:
            if isinstance(event, RunStarted):
                self._started = event
            listen(event)

        return heard

    def finished(self, result: TuneResult, follow_up: FollowUp) -> None:
        """Tell the result, as the last line of `sdk autotune --json` has it, with a line for people."""
        self._tell({**result_document(result, follow_up), "text": result_text(result)})

    def failed(self, error: Exception) -> None:
        """Tell that an error has ended the run, if it had begun."""
        started = self._started
        if started is None:
            return
        is_known = isinstance(error, SdkError)
        message = str(error) if is_known else f"unexpected error ({type(error).__name__})"
        self._tell(
            {
                "event": "failed",
                "generator": started.generator,
                "target": started.target,
                "run_folder": started.run_folder,
                "message": message,
                "text": f"{started.generator} for {started.target}: the run failed. {message}",
            }
        )

    def _tell(self, document: dict[str, object]) -> None:
        text = json.dumps(document) + "\n"
        for notifier in self.notifiers:
            try:
                trouble = notifier.send(text)
            except Exception as error:  # the run is over, whatever this is; its text may have a secret
                trouble = f"unexpected {type(error).__name__}"
            if trouble:
                self.warn(f"{notifier.label} was not notified: {trouble}.")


def result_text(result: TuneResult) -> str:
    """One line for people: what was tuned, how the run ended and what came of it."""
    found = ", ".join(_of_one(tuned) for tuned in result.tuned)
    return f"{result.generator} for {result.target} ({result.outcome.value}): {found}"


def _of_one(tuned: TunedSchedule) -> str:
    if tuned.is_published and tuned.speed_up is not None:
        return f"{tuned.speed_up:.2f} times as fast"
    return "a schedule is published" if tuned.is_published else "nothing faster"
