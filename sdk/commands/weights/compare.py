"""`sdk weights show`, `diff` and `evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sdk.options.shared_options import JsonOption, complete_weights_names

if TYPE_CHECKING:
    from autotune_loop.cost_model.ranking import RankingScores

WeightsArgument = Annotated[
    str,
    typer.Argument(
        metavar="WEIGHTS",
        help="A name that `sdk weights` lists, a path that ends in .weights, or baseline.",
        autocompletion=complete_weights_names,
    ),
]


def register(group: typer.Typer) -> None:
    """Add the commands to the group."""
    group.command("show")(show)
    group.command("diff")(diff)
    group.command("evaluate")(evaluate)


def show(weights: WeightsArgument, as_json: JsonOption = False) -> None:
    """Say what weights were trained on, from what, and how well they rank.

    Example: sdk weights show x86-64
    """
    from dataclasses import asdict

    from sdk.display.lineage_facts import lineage_facts
    from sdk.output import print_json
    from sdk.select.named_weights import find_weights
    from sdk.settings import read_settings

    found = find_weights(weights, read_settings())
    fields = {"name": found.label, "path": str(found.source), "sha256": found.sha256, "shipped": found.is_shipped}
    if as_json:
        print_json(fields | asdict(found.lineage))
        return
    file = {"name": found.label, "file": f"{found.source}{' (came with the SDK)' if found.is_shipped else ''}"}
    for label, text in {**file, "sha256": found.sha256, **lineage_facts(found.lineage)}.items():
        typer.echo(f"{label:16} {text}")


def diff(first: WeightsArgument, second: WeightsArgument, as_json: JsonOption = False) -> None:
    """Compare two sets of weights: every layer's change, and what is known of both.

    Example: sdk weights diff baseline x86-64
    """
    from dataclasses import asdict

    from sdk.display.lineage_facts import lineage_facts
    from sdk.output import print_json
    from sdk.select.named_weights import find_weights
    from sdk.settings import read_settings
    from weights.arithmetic import relative_changes

    settings = read_settings()
    one = find_weights(first, settings)
    two = find_weights(second, settings, one.weights.network)
    changes = relative_changes(one.weights, two.weights)
    told = {
        key: [value, asdict(two.lineage)[key]]
        for key, value in asdict(one.lineage).items()
        if value != asdict(two.lineage)[key]
    }
    equal = one.sha256 == two.sha256
    if as_json:
        print_json({"equal": equal, "relative_change": changes, "lineage": told})
        return
    typer.echo("They are equal." if equal else "Change of each layer, as a share of the first one's size:")
    for name, change in () if equal else changes.items():
        typer.echo(f"  {name:14} {100 * change:8.2f} %")
    before, after = lineage_facts(one.lineage), lineage_facts(two.lineage)
    for label in dict.fromkeys([*before, *after]):
        if before.get(label) != after.get(label):
            typer.echo(f"  {label:16} {before.get(label, 'unknown')} | {after.get(label, 'unknown')}")


def evaluate(
    weights: Annotated[
        list[str],
        typer.Argument(
            metavar="WEIGHTS…",
            help="Names, paths that end in .weights, or baseline.",
            autocompletion=complete_weights_names,
        ),
    ],
    runs: Annotated[
        list[Path], typer.Option("--on", metavar="RUN", help="A run folder, or a folder of .sample files. Repeat.")
    ],
    parallelism: Annotated[int | None, typer.Option("--parallelism", min=1, help="Cores of the device.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Score weights on recorded schedules, beside Halide's own.

    Example: sdk weights evaluate x86-64 --on tuned/blur-x86-64-1
    """
    from dataclasses import asdict

    from sdk.api.evaluate_weights import evaluate_weights
    from sdk.output import print_json, show_progress

    with show_progress("reading samples", quiet=as_json) as progress:
        scores = evaluate_weights(weights, runs, parallelism=parallelism, progress=progress)
    if as_json:
        print_json(
            [
                {
                    "weights": score.label,
                    **asdict(score.overall),
                    "by_pipeline": {str(key): asdict(value) for key, value in score.by_pipeline.items()},
                }
                for score in scores
            ]
        )
    else:
        _print_scores([(score.label, score.overall, len(score.by_pipeline)) for score in scores])


def _print_scores(rows: list[tuple[str, RankingScores, int]]) -> None:
    from rich.table import Table
    from rich.text import Text

    from sdk.display.quantities import count_text, share_text
    from sdk.output import make_console

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("weights")
    for name in ("pairs in order", "best in first 8", "best is first", "rank correlation"):
        table.add_column(name, justify="right")
    for label, score, _ in rows:
        correlation = "" if score.spearman is None else f"{score.spearman:.2f}"
        shares = [score.pairwise_accuracy, score.best_in_top_8, score.best_in_top_1]
        table.add_row(Text(label, style="cyan"), *(share_text(share) for share in shares), correlation)
    console = make_console()
    console.print(table)
    samples, pipelines = count_text(rows[0][1].samples, "schedule"), count_text(rows[0][2], "pipeline")
    console.print(
        Text(f"{samples} of {pipelines}; 'best in first 8' is the best time among the 8 that the weights", style="dim")
    )
    console.print(Text("put first, as a share of the best time of all: 100 % is perfect.", style="dim"))
