"""`sdk network`: neural networks, from a model to what is tuned of it, and to a library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.sdk.commands.network.bench import bench
from halide_autotune.sdk.commands.network.build import build
from halide_autotune.sdk.display.quantities import count_text, time_text
from halide_autotune.sdk.options.autotune_options import run_options
from halide_autotune.sdk.options.shared_options import JsonOption
from halide_autotune.sdk.options.with_options import Takes, with_options
from halide_autotune.sdk.output import make_console, plain_table, print_json, show_progress, shown_path
from halide_autotune.sdk.project.file import find_project
from halide_autotune.sdk.service.interrupts import stop_on_interrupt
from halide_autotune.targets.process.stop_signal import StopSignal

if TYPE_CHECKING:
    from halide_autotune.autotune_loop.events import Event
    from halide_autotune.sdk.api.network.tune import NetworkTasks, TunedNetwork

group = typer.Typer(
    name="network",
    help="Neural networks: what there is to tune in a model, tuning it, and building it for a target.\n\n"
    "Example: sdk network tasks MobileNetV2",
)
group.command("build")(build)
group.command("bench")(bench)
_MODEL_HELP = (
    "A .keras or .tflite file, a .toml list of operators, an application of Keras such as MobileNetV2, or"
    " resnet18-convolutions."
)


@group.command()
def tasks(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=_MODEL_HELP)],
    as_json: JsonOption = False,
) -> None:
    """List the operators of a model that are to be tuned: fused, equal ones once, with how often they are needed.

    The exit code is 1 where a layer has no operator: the model cannot be built.

    Example: sdk network tasks MobileNetV2
    """
    from halide_autotune.sdk.api.network.tune import network_tasks

    with show_progress(f"reading {model}", quiet=as_json):
        found = network_tasks(model)
    if as_json:
        print_json(found.to_dict())
    else:
        _print(found)
    if found.unsupported:
        raise typer.Exit(1)


def _print(found: NetworkTasks) -> None:
    total = sum(task.count * task.operations for task in found.tasks)
    numbers = ("times", "million operations", "share")
    table = plain_table("operator", *numbers, "first layer", numbers=numbers)
    for task in found.tasks:
        share = task.count * task.operations / max(1, total)
        work = f"{task.operations / 1e6:,.1f}"
        table.add_row(task.title, str(task.count), work, f"{100 * share:.0f} %", task.places[0][0])
    console = make_console()
    console.print(table)
    operators = sum(task.count for task in found.tasks)
    counted = f"{count_text(len(found.tasks), 'task')} for {count_text(operators, 'operator')}"
    console.print(f"{found.network.name}: {counted}, {total / 1e6:,.0f} million operations.")
    for each in found.unsupported:
        typer.echo(f"layer {each.place}: {each.reason}.", err=True)
    if found.unsupported:
        typer.echo("These layers cannot be tuned, and the model cannot be built with them.", err=True)


@group.command()
@with_options
def tune(
    network: Annotated[str, typer.Argument(metavar="MODEL", help=_MODEL_HELP)],
    typed: Annotated[Mapping[str, Any], Takes(RunOptions)],
    *,
    run_folder: Annotated[
        Path | None,
        typer.Option("--run-dir", "-b", metavar="FOLDER", help="Folder of the run. Default: a new one in tuned/."),
    ] = None,
    try_layouts: Annotated[
        bool,
        typer.Option(
            "--try-layouts",
            help="First time each operator's own schedule with other layouts of its weights, and keep the fastest.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Tune all operators of a model in one run: where the model's time falls most gets the most of the budget.

    Ctrl-C stops it and keeps the best; `sdk autotune --resume FOLDER` continues it.

    Example: sdk network tune MobileNetV2 --target arm64 --budget 30m
    """
    options = run_options(typed, find_project(Path.cwd()))
    # Imported here: it takes long, and a wrong option need not wait for it.
    from halide_autotune.sdk.api.network.tune import tune_network
    from halide_autotune.sdk.commands.autotune.follow_up import check_outcome

    stop = StopSignal()
    with (
        show_progress(f"reading {network}", quiet=as_json) as progress,
        stop_on_interrupt(stop, lambda: progress("stopping")),
    ):
        result = tune_network(
            network,
            options=options,
            run_folder=run_folder,
            listen=_teller(progress),
            stop=stop,
            tries_layouts=try_layouts,
        )
    if as_json:
        print_json(result.to_dict())
    else:
        _print_tuned(network, result)
    check_outcome(result.result)


def _teller(progress: Callable[[str], None]) -> Callable[[Event], None]:
    def listen(event: Event) -> None:
        from halide_autotune.autotune_loop.events import BatchDone, Notice

        if isinstance(event, BatchDone):
            done = f"operator {event.task_index + 1}, round {event.round_index + 1}"
            progress(f"{done}: {count_text(event.measured, 'schedule')} timed")
        elif isinstance(event, Notice) and event.warning:
            progress(event.text)

    return listen


def _print_tuned(model: str, result: TunedNetwork) -> None:
    from halide_autotune.autotune_loop.network.models import is_list

    numbers = ("times", "untuned", "tuned", "times as fast")
    table = plain_table("operator", *numbers, numbers=numbers)
    for each in result.operators:
        faster = "" if each.found.speed_up is None else f"{each.found.speed_up:.2f}"
        times = ["–" if ms is None else time_text(ms) for ms in (each.untuned_ms, each.tuned_ms)]
        table.add_row(each.task.title, str(each.task.count), *times, faster)
    console = make_console()
    console.print(table)
    if result.untuned_ms is not None and result.tuned_ms is not None:
        whole = f"{time_text(result.untuned_ms)} untuned, {time_text(result.tuned_ms)} tuned"
        console.print(f"{result.network.name}: {whole}, for all calls of these operators.")
    if result.rest:
        count = sum(task.count for task in result.rest)
        console.print(f"{count_text(count, 'operator')} that only move numbers are not tuned.", style="dim")
    use = "sdk ship gives its headers" if is_list(model) else "sdk network build uses it"
    console.print(f"The run is {shown_path(result.result.run_folder)}: sdk report shows it, {use}.")
