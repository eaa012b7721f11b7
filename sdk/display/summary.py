"""The summary at the end of a run, on terminals and in logs."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from halide_autotune.autotune_loop.parameters.space import set_text
from halide_autotune.autotune_loop.run.result import DeviceUse, Outcome, TunedSchedule, TuneResult
from halide_autotune.devices.device import Clock
from halide_autotune.sdk.display.clock_lines import clock_lines
from halide_autotune.sdk.display.display import FollowUp
from halide_autotune.sdk.display.published_rows import (
    LABEL_WIDTH,
    ShownTimes,
    published_rows,
    size_schedule_rows,
)
from halide_autotune.sdk.display.quantities import count_text, duration_text, rate_text
from halide_autotune.sdk.output import make_console, shown_path

_OUTCOMES = {
    Outcome.FINISHED: "all rounds are done",
    Outcome.BUDGET_SPENT: "the budget is spent",
    Outcome.INTERRUPTED: "interrupted; everything measured is saved",
    Outcome.DEVICES_LOST: "all devices were lost; everything measured is saved",
    Outcome.EXHAUSTED: "the search finds no new schedules",
}


def print_summary(
    result: TuneResult, follow_up: FollowUp, samples_per_minute: float | None, *, clock_is_told: bool = False
) -> None:
    """Print the result on standard output.

    Args:
        samples_per_minute: schedules timed a minute since the run started or was resumed; None if there were none.
        clock_is_told: the lines above the summary have said what the times are.

    Raises:
        OSError: standard output cannot be written.
    """
    console = make_console()
    for line in _lines(result, follow_up, samples_per_minute, clock_is_told):
        # Never wrapped, so that paths and commands can be copied.
        console.print(line, soft_wrap=True, highlight=False, markup=False)


def _lines(
    result: TuneResult, follow_up: FollowUp, samples_per_minute: float | None, clock_is_told: bool
) -> Iterator[Text]:
    yield Text()
    yield Text(f"{result.generator} for {result.target} on {result.device}", style="bold")
    clock = Clock(result.clock)
    if not clock_is_told:
        yield from clock_lines([result.clock])
    if not result.tuned:
        yield Text("nothing was timed", style="bold red")
    for index, tuned in enumerate(result.tuned):
        if len(result.tuned) > 1:
            values = " ".join(f"{key}={value}" for key, value in tuned.parameters.items())
            several = len({t.generator for t in result.tuned}) > 1
            name = tuned.generator if several else f"argument set {index + 1}"
            yield Text(f"{name}: {values or 'the defaults'}", style="bold")
        yield from _tuned_lines(tuned, clock.mark)
    yield from _run_lines(result, samples_per_minute)
    for label, command in follow_up.items():
        yield _row(label, command, "cyan")


def _tuned_lines(tuned: TunedSchedule, mark: str) -> Iterator[Text]:
    if not (tuned.is_published or tuned.keeps_own):
        no_default = tuned.published.no_default
        why = "nothing was timed" if no_default is None else f"nothing is published. {no_default.sentence}"
        yield _row("tuned", why, "bold red")
        return
    of_devices_ms = [tuned_ms for _, tuned_ms in tuned.by_device.values()]
    shown = ShownTimes.of(tuned.published, tuned.size_schedules, mark, of_devices_ms)
    for name, text, style in published_rows(tuned.published, shown, tuned.default_description):
        yield _row(name, text, style)
    for name, text, style in size_schedule_rows(tuned.size_schedules, shown):
        yield _row(name, text, style)
    yield from _device_lines(tuned, shown)
    if tuned.header is not None:
        yield _row("header", shown_path(tuned.header))
        for one in tuned.size_schedules:
            if one.is_own:
                yield _row("", shown_path(tuned.header.with_name(one.header)))
    if tuned.parameters_file is not None:
        yield _row("parameters", set_text(tuned.tuned_parameters), "bold")
        yield _row("file", shown_path(tuned.parameters_file))


def _device_lines(tuned: TunedSchedule, shown: ShownTimes) -> Iterator[Text]:
    """Return the winner's gain on each device, if there are several."""
    if len(tuned.by_device) < 2:
        return
    ratios = {} if tuned.verdict is None or tuned.published.stays else tuned.verdict.by_device
    for device, (_, tuned_ms) in tuned.by_device.items():
        gain = f", {ratios[device].speed_text()}" if device in ratios else ""
        yield _row(device, f"{shown.text(tuned_ms)}{gain}")


def _run_lines(result: TuneResult, samples_per_minute: float | None) -> Iterator[Text]:
    is_search = any(tuned.header is not None or not tuned.tuned_parameters for tuned in result.tuned)
    if is_search:
        yield _row("weights", shown_path(result.weights))
    rate = "" if samples_per_minute is None else f", {rate_text(samples_per_minute)}"
    rounds, timed = (
        count_text(result.totals.rounds, "round"),
        count_text(result.totals.samples_timed, "schedule" if is_search else "parameter set"),
    )
    yield _row("timed", f"{timed} in {rounds}{rate}")
    failures = ", ".join(f"{count} {kind}" for kind, count in result.totals.failures.items()) or "none"
    not_done = f"; {result.totals.not_done} more were chosen but not timed" if result.totals.not_done else ""
    yield _row("failed", f"{failures}{not_done}")
    if len(result.devices) > 1:
        yield _row("devices", "; ".join(_use_text(use) for use in result.devices))
    if result.totals.incidents:
        incidents = ", ".join(f"{count} {kind}" for kind, count in result.totals.incidents.items())
        yield _row("incidents", f"{incidents}; their schedules were timed again")
    how = _OUTCOMES[result.outcome]
    if result.outcome is Outcome.EXHAUSTED and not is_search:
        how = "all parameter sets are timed"
    yield _row("ended", f"after {duration_text(result.totals.duration_s)}: {how}")


def _use_text(use: DeviceUse) -> str:
    """Return a device's part in the run, and the factor of its times if it is not 1."""
    told = "" if use.factor is None or use.factor_spread is None else f"{use.factor:.2f} ± {use.factor_spread:.0%}"
    if not use.fits:
        return f"{use.name}: left out, unlike the others (times × {told})"
    times = f" (times × {told})" if told and use.factor != 1.0 else ""
    return f"{use.name}: {use.timed} in {duration_text(use.held_s)}{times}"


def _row(label: str, text: str, style: str = "") -> Text:
    return Text.assemble((f"  {label:{LABEL_WIDTH}}", "dim"), (text, style))
