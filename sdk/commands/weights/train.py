"""`sdk weights train`: weights for a kind of device, from random programs that are timed on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halide_autotune.autotune_loop.specification.options import DeviceOptions, FarmOptions, RunOptions
from halide_autotune.autotune_loop.training.training_options import TrainingOptions
from halide_autotune.sdk.display.quantities import count_text, share_text
from halide_autotune.sdk.options.autotune_options import chosen_options
from halide_autotune.sdk.options.shared_options import JsonOption
from halide_autotune.sdk.options.with_options import Takes, with_options
from halide_autotune.sdk.output import make_console, plain_table, print_json, show_progress, shown_path
from halide_autotune.sdk.project.file import find_project
from halide_autotune.sdk.service.interrupts import stop_on_interrupt
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.values.options import differing_options, options_of, value_at
from halide_autotune.targets.values.texts import parse_duration_s

if TYPE_CHECKING:
    from halide_autotune.autotune_loop.cost_model.ranking import RankingScores
    from halide_autotune.autotune_loop.events import Event
    from halide_autotune.autotune_loop.training.trained_weights import TrainedWeights

_INTERRUPTED = 130


@with_options
def train(
    typed: Annotated[Mapping[str, Any], Takes(TrainingOptions)],
    *,
    budget: Annotated[
        str, typer.Option("--budget", metavar="TIME", help="End after this time, or soon after: 30m, 3h.")
    ] = "1h",
    folder: Annotated[
        Path | None,
        typer.Option(
            "--run-dir",
            "-b",
            metavar="FOLDER",
            help="Folder of the training, which goes on where it was left. Default: tuned/weights-PROFILE.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Learn weights for a target from random programs: draw some, time their schedules, train, and again.

    A fifth of the programs judge the result. Weights that order these better than the SDK's (Halide's, where it has
    none for the profile) are kept under the profile's name, and later searches for it start from them. Give the command
    again to go on.

    Example: sdk weights train --target arm64 --device pi5 --budget 3h
    """
    budget_s, values = parse_duration_s(budget), _asked(typed, folder)
    TrainingOptions.of(**values)  # what is wrong is told before anything else
    # Imported here: it takes long, and a wrong option need not wait for it.
    from halide_autotune.sdk.api.weights.train_weights import train_weights

    stop = StopSignal()
    with (
        show_progress("starting the training", quiet=as_json) as progress,
        stop_on_interrupt(stop, lambda: progress("stopping")),
    ):
        teller = _Teller(progress, quiet=as_json)
        result = train_weights(
            options=values, folder=folder, budget_s=budget_s, listen=teller.listen, tell=teller.tell, stop=stop
        )
    if as_json:
        print_json(result.to_dict())
    else:
        _print(result)
    if result.was_interrupted:
        raise typer.Exit(_INTERRUPTED)
    if not (result.are_better or result.nest_prior):
        raise typer.Exit(1)


def _asked(typed: Mapping[str, Any], folder: Path | None) -> Mapping[str, object]:
    """What is typed, over what `sdk.toml` says of devices; of a training that goes on only what is typed."""
    from halide_autotune.autotune_loop.training.training_folder import open_training

    if folder is not None and open_training(folder) is not None:
        return typed
    known = {option.keyword for kind in (DeviceOptions, FarmOptions) for option in options_of(kind)}
    of_devices = {keyword: value for keyword, value in typed.items() if keyword in known}
    asked = chosen_options(of_devices, find_project(Path.cwd()), known)
    given = [each for each in differing_options(RunOptions(), asked) if each.keyword in known]
    return {**{option.keyword: value_at(asked, option) for option in given}, **typed}


class _Teller:
    """Tells how far a training is, from the events of its runs."""

    def __init__(self, progress: Callable[[str], None], *, quiet: bool) -> None:
        self._progress, self._quiet = progress, quiet
        self._programs = self._timed = 0
        self._told: set[str] = set()

    def tell(self, text: str) -> None:
        """Print what should stay to be read, once."""
        if not self._quiet and text not in self._told:
            self._told.add(text)
            typer.echo(text, err=True)

    def listen(self, event: Event) -> None:
        """Take an event of an iteration's run."""
        from halide_autotune.autotune_loop.events import BatchDone, Notice, RunStarted

        if isinstance(event, RunStarted):
            self._programs, self._timed = event.length.tasks, 0
        elif isinstance(event, BatchDone):
            self._timed += event.measured
            done = f"program {event.task_index + 1} of {self._programs}"
            self._progress(f"{done}: {count_text(self._timed, 'schedule')} timed in this iteration")
        elif isinstance(event, Notice) and event.warning:
            self.tell(event.text)


def _print(result: TrainedWeights) -> None:
    counts, scores = result.counts, result.scores
    learnt = f"{count_text(counts.schedules, 'schedule')} of {count_text(counts.programs, 'random program')}"
    judged = f"{count_text(counts.judging_schedules, 'schedule')} of {count_text(counts.judging_programs, 'other')}"
    console = make_console()
    console.print(f"Learnt from {learnt} in {count_text(result.iterations, 'iteration')}; judged by {judged}.")
    numbers = ("pairs in order", "best in first 8")
    table = plain_table("", *numbers, numbers=numbers)
    table.add_row("earlier weights", *_shares(scores.before))
    table.add_row("trained weights", *_shares(scores.after))
    for title, found in (("loop nests, the SDK's", scores.nests_before), ("loop nests, learnt", scores.nests_after)):
        if found is not None:
            table.add_row(title, share_text(found[0]), share_text(found[1]))
    console.print(table)
    if scores.search_gain is not None:
        console.print(f"Searches with the trained weights find schedules {scores.search_gain:.2f} times as fast.")
    console.print(f"weights: {shown_path(result.weights)}")
    console.print(_kept_text(result))


def _kept_text(result: TrainedWeights) -> str:
    if result.are_better:
        return f"They are kept as {result.kept_as}: searches for it start from them." if result.kept_as else ""
    why = _why_not(result)
    if result.kept_as:
        return f"{why}, so those stay. What was learnt of loop nests is kept as {result.kept_as}."
    return f"{why}, so those stay. Give the command again to learn from more."


def _why_not(result: TrainedWeights) -> str:
    if result.scores.after.pairwise_accuracy is None:
        return "There is too little to judge them by"
    if result.scores.search_gain is not None:
        return "Searches with them find slower schedules"
    if result.was_interrupted:
        return "They have not been tried in searches yet"
    return "They are no better than the earlier weights"


def _shares(scores: RankingScores) -> tuple[str, str]:
    return share_text(scores.pairwise_accuracy), share_text(scores.best_in_top_8)
