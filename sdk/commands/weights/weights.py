"""`sdk weights`: the weights that searches can start from; list, train, show, diff, evaluate, import and export."""

from __future__ import annotations

from dataclasses import asdict
from dataclasses import replace as changed
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from halide_autotune.autotune_loop.specification.options import DeviceOptions
from halide_autotune.sdk.commands.weights.train import train
from halide_autotune.sdk.display.quantities import count_text, share_text
from halide_autotune.sdk.options.completion import COMPLETIONS
from halide_autotune.sdk.options.shared_options import JsonOption, declared
from halide_autotune.sdk.output import make_console, plain_table, print_json, show_progress
from halide_autotune.sdk.settings import read_settings
from halide_autotune.targets.errors import UsageError, WeightsError, os_error_as

if TYPE_CHECKING:
    from halide_autotune.autotune_loop.cost_model.weights_evaluation import WeightsScore
    from halide_autotune.weights.lineage import Lineage, Training
    from halide_autotune.weights.registry import RegisteredWeights

_DIGITS_OF_HASH = 12
group = typer.Typer(name="weights")
group.command("train")(train)
_WeightsArgument = Annotated[
    str,
    typer.Argument(
        metavar="WEIGHTS",
        help="A name that `sdk weights` lists, a path that ends in .weights, or baseline.",
        autocompletion=COMPLETIONS["weights"],
    ),
]


@group.callback(invoke_without_command=True)
def weights(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the weights that have a name; train, show, compare, evaluate, import and export them.

    Example: sdk weights
    """
    context.obj = as_json
    if context.invoked_subcommand is None:
        list_(context)


@group.command("list")
def list_(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the weights that have a name, as `sdk weights` does.

    Example: sdk weights list
    """
    from halide_autotune.sdk.select.named_weights import open_registry

    registry = open_registry(read_settings())
    sound, damaged = registry.entries()
    if as_json or context.obj:
        fields = [
            {"name": e.name, "path": str(e.path), "sha256": e.sha256, "shipped": e.is_shipped, **e.lineage.to_dict()}
            for e in sound
        ]
        broken = [{"name": d.name, "path": str(d.path), "message": d.message} for d in damaged]
        print_json({"folder": str(registry.folder), "weights": fields, "damaged": broken})
        return
    _print_entries(sound)
    for entry in damaged:
        typer.echo(f"{entry.name}: {entry.message}")
    typer.echo(f"Your weights are in {registry.folder}.")


def _print_entries(entries: list[RegisteredWeights]) -> None:
    console = make_console()
    if not entries:
        console.print("No weights yet: searches start from the weights in Halide's plug-in.")
        return
    numbers = ("samples", "pipelines", "pairs in order")
    table = plain_table("name", "network", *numbers, "created", "clock", "from", numbers=numbers)
    for entry in entries:
        lineage = entry.lineage
        source = "the SDK" if entry.is_shipped else "you"
        table.add_row(
            entry.name,
            lineage.network,
            str(lineage.training.samples or ""),
            str(lineage.training.pipelines or ""),
            "" if lineage.training.pairwise_accuracy is None else share_text(lineage.training.pairwise_accuracy),
            lineage.created,
            lineage.clock,
            source,
        )
    console.print(table)


@group.command()
def show(weights: _WeightsArgument, as_json: JsonOption = False) -> None:
    """Show what weights were trained on, what they started from, and how well they rank.

    Example: sdk weights show x86-64
    """
    from halide_autotune.sdk.select.named_weights import find_weights

    found = find_weights(weights, read_settings())
    fields = {"name": found.label, "path": str(found.source), "sha256": found.sha256, "shipped": found.is_shipped}
    if as_json:
        print_json(fields | found.lineage.to_dict())
        return
    file = {"name": found.label, "file": f"{found.source}{' (came with the SDK)' if found.is_shipped else ''}"}
    for label, text in {**file, "sha256": found.sha256, **lineage_facts(found.lineage)}.items():
        typer.echo(f"{label:16} {text}")


@group.command()
def diff(first: _WeightsArgument, second: _WeightsArgument, as_json: JsonOption = False) -> None:
    """Compare two sets of weights: the change of each layer, and where each set comes from.

    Example: sdk weights diff baseline x86-64
    """
    from halide_autotune.sdk.select.named_weights import find_weights
    from halide_autotune.weights.arithmetic import relative_changes

    settings = read_settings()
    one = find_weights(first, settings)
    two = find_weights(second, settings, one.weights.network)
    changes = relative_changes(one.weights, two.weights)
    equal = one.sha256 == two.sha256
    if as_json:
        others = two.lineage.to_dict()
        lineage = {key: [value, others[key]] for key, value in one.lineage.to_dict().items() if value != others[key]}
        print_json({"equal": equal, "relative_change": changes, "lineage": lineage})
        return
    typer.echo("They are equal." if equal else "Change of each layer, as a share of its size in the first set:")
    for name, change in () if equal else changes.items():
        typer.echo(f"  {name:14} {100 * change:8.2f} %")
    before, after = lineage_facts(one.lineage), lineage_facts(two.lineage)
    for label in dict.fromkeys([*before, *after]):
        if before.get(label) != after.get(label):
            typer.echo(f"  {label:16} {before.get(label, 'unknown')} | {after.get(label, 'unknown')}")


def lineage_facts(lineage: Lineage) -> dict[str, str]:
    """Return what is known about weights, for people, by a label of at most 15 letters."""
    held_out = lineage.training.held_out_samples
    accuracy, best = lineage.training.pairwise_accuracy, lineage.training.best_in_top_8
    facts = {
        "network": lineage.network + (f" of Halide {lineage.halide_version}" if lineage.halide_version else ""),
        "feature version": str(lineage.feature_version or ""),
        "timed on": _timed_on(lineage),
        "trained on": _trained_on(lineage.training),
        "started from": lineage.parent_sha256 and f"weights {lineage.parent_sha256[:_DIGITS_OF_HASH]}…",
        "scored on": f"{count_text(held_out, 'held-out schedule')}" if held_out else "",
        "pairs in order": "" if accuracy is None else share_text(accuracy),
        "best in first 8": "" if best is None else f"{share_text(best)} of the best time (100 % is perfect)",
        "created": lineage.created,
        "note": lineage.note,
    }
    return {label: text for label, text in facts.items() if text}


def _timed_on(lineage: Lineage) -> str:
    from halide_autotune.devices.device import Clock

    cores = count_text(lineage.parallelism, "core") if lineage.parallelism else ""
    clock = Clock.words_of(lineage.clock) if lineage.clock else ""
    device = f"device {lineage.device}" if lineage.device else ""
    return ", ".join(text for text in (lineage.profile, device, cores, clock) if text)


def _trained_on(training: Training) -> str:
    samples = f"{training.samples:,} schedule{'' if training.samples == 1 else 's'}" if training.samples else ""
    pipelines = count_text(training.pipelines, "pipeline") if training.pipelines else ""
    counts = " of ".join(text for text in (samples, pipelines) if text)
    return f"{counts}, in {count_text(training.rounds, 'round')}" if counts and training.rounds else counts


@group.command()
def evaluate(
    weights: Annotated[
        list[str],
        typer.Argument(
            metavar="WEIGHTS",
            help="Names, paths that end in .weights, or baseline.",
            autocompletion=COMPLETIONS["weights"],
        ),
    ],
    runs: Annotated[
        list[Path],
        typer.Option(
            "--on",
            metavar="RUN",
            help="A run folder, or a folder of .sample files. Repeatable.",
            autocompletion=COMPLETIONS["runs"],
        ),
    ],
    parallelism: Annotated[
        int | None, typer.Option("--parallelism", metavar="THREADS", min=1, help="Cores of the device.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Score weights on recorded schedules, beside Halide's own.

    Example: sdk weights evaluate x86-64 --on tuned/blur-x86-64-1
    """
    from halide_autotune.sdk.api.weights.retrain import evaluate_weights

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
        _print_scores(scores)


def _print_scores(scores: list[WeightsScore]) -> None:
    numbers = ("pairs in order", "best in first 8", "best is first", "rank correlation")
    table = plain_table("weights", *numbers, numbers=numbers)
    for score in scores:
        ranking = score.overall
        correlation = "" if ranking.spearman is None else f"{ranking.spearman:.2f}"
        in_order = ranking.accuracy_text.removesuffix(" pairs") if ranking.pairs else share_text(None)
        shares = [ranking.best_in_top_8, ranking.best_in_top_1]
        table.add_row(score.label, in_order, *(share_text(share) for share in shares), correlation)
    console = make_console()
    console.print(table)
    schedules = count_text(scores[0].overall.samples, "schedule")
    pipelines = count_text(len(scores[0].by_pipeline), "pipeline")
    console.print(
        f"{schedules} of {pipelines}. 'best in first 8' is the best time among the 8 schedules that the weights rank"
        " first, as a share of the best time of all; 100 % is perfect.",
        style="dim",
    )


@group.command("import")
def import_weights(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .weights file; a .toml beside it has its lineage.")],
    target: Annotated[
        str | None,
        declared(DeviceOptions, "target", help="Its profile."),
    ] = None,
    device: Annotated[str, typer.Option("--device", metavar="NAME", help="The device that it was trained on.")] = "",
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="A note, one line.")] = "",
    replace: Annotated[bool, typer.Option("--replace", help="Replace the weights that have the name.")] = False,
) -> None:
    """Keep a weights file under the name of its profile and device; searches for them start from it.

    Example: sdk weights import tuned/blur-arm64-1/samples/updated.weights --target arm64 --device pi4
    """
    from halide_autotune.sdk.select.named_weights import open_registry
    from halide_autotune.targets.profile.loader import load_profile
    from halide_autotune.weights.lineage import Lineage, read_lineage
    from halide_autotune.weights.registry import entry_name, nest_prior_beside
    from halide_autotune.weights.weights_file import read_weights, weights_sha256

    settings = read_settings()
    weights = read_weights(file)
    lineage = read_lineage(file, weights_sha256(weights)) or Lineage(network=weights.network.value)
    profile = load_profile(target, settings.profile_folder).name if target is not None else lineage.profile
    if not profile:
        raise UsageError(f"The profile of {file} is unknown.", next_step="Name it with --target.")
    lineage = changed(lineage, profile=profile, device=device or lineage.device, note=note or lineage.note)
    registry = open_registry(settings)
    name = entry_name(profile, lineage.device)
    if (registry.folder / f"{name}.weights").exists() and not replace:
        raise UsageError(f"Weights named {name} exist already.", next_step="Replace them with --replace.")
    nests = nest_prior_beside(file)
    entry = registry.add(name, weights, lineage, nests if nests.is_file() else None)
    typer.echo(f"{name}: {entry.path}")


@group.command("export")
def export_weights(
    weights: _WeightsArgument,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The .weights file to write; what else is known goes beside it."
        ),
    ],
) -> None:
    """Write weights and their lineage to files, to use them on another machine.

    Example: sdk weights export arm64@pi4 -o pi4.weights
    """
    from halide_autotune.sdk.select.named_weights import find_weights
    from halide_autotune.targets.process.atomic_write import write_atomically
    from halide_autotune.weights.lineage import check_lineage_place, write_lineage
    from halide_autotune.weights.registry import nest_prior_beside
    from halide_autotune.weights.weights_file import write_weights

    found = find_weights(weights, read_settings())
    check_lineage_place(output)
    write_weights(found.weights, output)
    written = [output, write_lineage(found.lineage, output)]
    learnt, beside = nest_prior_beside(found.source), nest_prior_beside(output)
    with os_error_as(WeightsError, f"{beside} cannot be written"):
        if learnt.is_file():
            write_atomically(beside, learnt.read_bytes())
            written.append(beside)
        else:
            beside.unlink(missing_ok=True)  # of the weights that were there before
    typer.echo(" and ".join(map(str, written)))
