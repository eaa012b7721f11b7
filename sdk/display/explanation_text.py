"""Why a schedule is fast, in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from halide_autotune.autotune_loop.explain.explained import ExplainedFunc, ExplainedSchedule, Explanation
from halide_autotune.autotune_loop.explain.words import bytes_words, place_words, time_words
from halide_autotune.sdk.output import make_console, plain_table

if TYPE_CHECKING:
    from rich.table import Table

# The rest is in the JSON and on the page.
_MOST_FUNCS = 12


def print_explanation(explanation: Explanation) -> None:
    """Print what limits the schedule, what has changed, and its Funcs; what is missing goes to standard error."""
    console = make_console()
    one, other = explanation.explained, explanation.compared_with
    console.print(f"{one.label}, on {explanation.device}", style="bold", markup=False)
    if explanation.limit:
        console.print(explanation.limit, highlight=False, markup=False, soft_wrap=True)
    if explanation.changes:
        console.print(f"Against {other.label}:", markup=False)
    for text in explanation.changes:
        console.print(f"  {text}", highlight=False, markup=False, soft_wrap=True)
    console.print(_func_table(one))
    console.print(_whole_table(explanation))
    for schedule in explanation.schedules:
        for text in schedule.missing:
            typer.echo(f"{schedule.label}: {text}", err=True)


def _func_table(schedule: ExplainedSchedule) -> Table:
    """The Funcs of the schedule, the slowest first."""
    numbers = ("time", "cores", "computed", "values at a time", "loads", "stores")
    table = plain_table("Func", "where", *numbers, numbers=numbers)
    table.caption = "computed: how often each point is; Funcs that are not listed are inlined"
    shown = schedule.shown_funcs
    for func in shown[:_MOST_FUNCS]:
        table.add_row(*_func_row(func, schedule.call_s))
    if len(shown) > _MOST_FUNCS:
        table.add_row(f"{len(shown) - _MOST_FUNCS} others", *[""] * 7)
    return table


def _func_row(func: ExplainedFunc, call_s: float | None) -> list[str]:
    share = "–" if func.time_s is None or not call_s else f"{100 * func.time_s / call_s:.0f} %"
    cores = "–" if func.threads is None else f"{func.threads:.1f}"
    counts = func.counts
    if counts is None:
        return [func.name, "Halide's runtime", share, cores, "–", "–", "–", "–"]
    return [
        func.name,
        place_words(counts).removeprefix("computed "),
        share,
        cores,
        "–" if func.times_computed is None else f"{func.times_computed:.2f}×",
        f"{counts.stored.values_at_once:.3g}",
        bytes_words(counts.loaded.bytes),
        bytes_words(counts.stored.bytes),
    ]


def _whole_table(explanation: Explanation) -> Table:
    """What a call of each schedule does, and what the device can do at most."""
    numbers = ("call", "cores", "loads", "stores", "least traffic", "operations")
    table = plain_table("schedule", *numbers, numbers=numbers)
    for one in explanation.schedules:
        traffic_bytes, busy = one.least_traffic_bytes(explanation.cache_bytes), one.busy_cores
        counted = any(func.counts is not None for func in one.funcs)
        table.add_row(
            one.label,
            "–" if one.call_s is None else time_words(one.call_s),
            "–" if busy is None else f"{busy:.1f} of {explanation.cores}",
            bytes_words(one.loaded_bytes) if counted else "–",
            bytes_words(one.stored_bytes) if counted else "–",
            "–" if traffic_bytes is None else bytes_words(traffic_bytes),
            "–" if one.operations is None else f"{one.operations / 1e6:.4g} million",
        )
    if explanation.limits is not None:
        a_second = f"{explanation.limits.operations_per_s / 1e9:.3g} billion"
        traffic = bytes_words(explanation.limits.bytes_per_s)
        table.add_row(f"{explanation.device}, a second", "", "", "", "", traffic, a_second)
    return table
