"""`sdk retrain`: train weights on recorded runs, without a device."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from halide_autotune.autotune_loop.specification.options import DeviceOptions, LearnOptions
from halide_autotune.sdk.display.quantities import count_text, duration_text
from halide_autotune.sdk.options.completion import COMPLETIONS
from halide_autotune.sdk.options.shared_options import JsonOption, declared
from halide_autotune.sdk.options.with_options import with_options
from halide_autotune.sdk.output import print_json, show_progress
from halide_autotune.targets.errors import UsageError


@with_options
def retrain(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN",
            help="Run folders, or folders of .sample files.",
            autocompletion=COMPLETIONS["runs"],
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The .weights file to write.")],
    target: Annotated[
        str | None,
        declared(DeviceOptions, "target", help="The profile of the runs."),
    ] = None,
    *,
    learn: LearnOptions,
    parallelism: Annotated[
        int | None, typer.Option("--parallelism", metavar="THREADS", min=1, help="Cores of the device.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="NUMBER", help="Chooses the samples that are held out.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Train the cost model on recorded runs, without a device.

    Example: sdk retrain tuned/blur-arm64-1 tuned/harris-arm64-1 --target arm64 -o board.weights
    """
    from halide_autotune.autotune_loop.cost_model.training_report import report_fields
    from halide_autotune.autotune_loop.events import Event, Notice
    from halide_autotune.sdk.api.weights.retrain import retrain as train_from_runs

    if output.suffix != ".weights":
        raise UsageError(f"{output}: the name must end in .weights, or Halide does not read it.")
    notices: list[str] = []
    with show_progress("reading samples", quiet=as_json) as progress:

        def listen(event: Event) -> None:
            if isinstance(event, Notice):
                (notices.append if event.warning else progress)(event.text)

        report = train_from_runs(
            runs,
            output,
            target=target,
            parallelism=parallelism,
            learn=learn,
            seed=seed,
            listen=listen,
        )
    for message in () if as_json else notices:
        typer.echo(f"note: {message}", err=True)
    written = str(output) if report.weights is not None else None
    if as_json:
        print_json({**report_fields(report), "notices": notices, "written": written})
    else:
        typer.echo(f"{report.outcome.value}: {report.reason}")
        counts = f"{report.training_samples} samples trained on, {report.held_out_samples} held out"
        typer.echo(f"{counts}, {count_text(report.pipelines, 'pipeline')}, {duration_text(report.duration_s)}")
        typer.echo(f"weights: {written}" if written else "weights: none written")
    if written is None:
        raise typer.Exit(1)
