"""The plots of a run."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from halide_autotune.autotune_loop.candidate import Measured, found_by
from halide_autotune.autotune_loop.cost_model.ranking import spearman
from halide_autotune.autotune_loop.parameters.space import set_text
from halide_autotune.autotune_loop.parameters.tuned_parameter import TunedParameter
from halide_autotune.autotune_loop.report.plot import (
    BEST_COLOUR,
    DASHES,
    POINTS,
    SAMPLE_COLOUR,
    Plot,
    draw_steps,
    line_styles,
    make_figure,
)
from halide_autotune.autotune_loop.report.recorded_run import RecordedRun
from halide_autotune.autotune_loop.store.published import timings_text

_FEWEST_FOR_A_CORRELATION = 4
# Beyond this many, words name the first and the last alone.
_MOST_IN_WORDS = 8


def best_so_far(samples: Sequence[Measured], lines_ms: Mapping[str, float], start_unix_s: float | None) -> Plot:
    """Every schedule and the best so far, against the number of schedules or against minutes since the start.

    Args:
        samples: of one argument set, in the order of timing.
        lines_ms: times to compare with, by name: the default, a schedule by hand, the incumbent.
        start_unix_s: when the run started; None plots against the number of schedules.
    """
    from bokeh.models import HoverTool

    best_ms = list(itertools.accumulate((s.median_ms for s in samples), min))
    last = best_ms.index(best_ms[-1])
    if start_unix_s is None:
        against, x_label, xs = "schedules timed", "schedules timed", [float(n) for n in range(1, len(samples) + 1)]
        reached = f"reached with schedule {last + 1} of {len(samples)}"
    else:
        against, x_label, xs = "time", "minutes since the start", [(s.at_unix_s - start_unix_s) / 60 for s in samples]
        reached = f"reached after {xs[last]:.1f} minutes"
    figure = make_figure(
        x_label,
        "time (ms)",
        y_axis_type="log",
        tooltips=[("schedule", "@sample"), ("time", "@y{0.0000} ms"), ("found by", "@origin")],
    )
    data = {
        "x": xs,
        "y": [s.median_ms for s in samples],
        "sample": [s.candidate.sample for s in samples],
        "origin": [found_by(s.candidate.point) for s in samples],
    }
    dots = figure.scatter("x", "y", source=data, size=4, color=SAMPLE_COLOUR, alpha=0.8, name="each schedule")
    figure.select_one(HoverTool).renderers = [dots]
    figure.step(xs, best_ms, mode="after", line_width=2.5, color=BEST_COLOUR, name="best so far")
    ends = [xs[0], xs[-1]]
    legend = {"each schedule": (SAMPLE_COLOUR, POINTS), "best so far": (BEST_COLOUR, DASHES[0])}
    dashed = itertools.islice(line_styles(), 1, None)  # the best so far is the solid line
    for (name, time_ms), (colour, dash) in zip(lines_ms.items(), dashed, strict=False):
        figure.line(ends, [time_ms] * 2, line_dash=dash, line_width=2, color=colour, name=name)
        legend[name] = (colour, dash)
    lines = "".join(f"; {name} {time_ms:.4g} ms" for name, time_ms in lines_ms.items())
    timed = timings_text(samples[last].processes)
    words = f"From {best_ms[0]:.4g} ms to {best_ms[-1]:.4g} ms, {timed}, {reached}{lines}."
    return Plot(f"Best so far, against {against}", words, figure, legend)


def best_by_technique(samples: Sequence[Measured], start_unix_s: float) -> Plot:
    """The best so far of each way of finding schedules, against minutes since the start.

    Args:
        samples: of one argument set, in the order of timing.
    """
    figure = make_figure(
        "minutes since the start",
        "time (ms)",
        y_axis_type="log",
        tooltips=[("found by", "$name"), ("time", "@y{0.0000} ms")],
    )
    by_origin: dict[str, list[Measured]] = {}
    for sample in samples:
        by_origin.setdefault(found_by(sample.candidate.point), []).append(sample)
    end = (samples[-1].at_unix_s - start_unix_s) / 60
    lines = {}
    for origin, found in by_origin.items():
        best_ms = list(itertools.accumulate((s.median_ms for s in found), min))
        xs = [(s.at_unix_s - start_unix_s) / 60 for s in found]
        lines[origin] = list(zip([*xs, end], [*best_ms, best_ms[-1]], strict=True))
    legend = draw_steps(figure, lines)
    fastest = {origin: min(found, key=lambda sample: sample.median_ms) for origin, found in by_origin.items()}
    words = _listed(
        [f"{origin} {one.median_ms:.4g} ms ({timings_text(one.processes)})" for origin, one in fastest.items()]
    )
    return Plot("Best so far, by what found it", f"The fastest of each: {words}.", figure, legend)


def times_by_parameter(samples: Sequence[Measured], parameter: TunedParameter) -> Plot:
    """The time of every set against its value of one parameter, and the fastest of each value.

    Args:
        samples: of an argument set whose parameters were tuned.
    """
    from bokeh.models import HoverTool

    values = list(parameter.values)
    values += sorted({s.candidate.parameters[parameter.name] for s in samples} - set(values))  # the default's
    figure = make_figure(
        parameter.name,
        "time (ms)",
        x_range=values,
        y_axis_type="log",
        tooltips=[("parameter set", "@set"), ("time", "@y{0.0000} ms")],
    )
    fastest_ms: dict[str, float] = {}
    for sample in samples:
        value = sample.candidate.parameters[parameter.name]
        fastest_ms[value] = min(sample.median_ms, fastest_ms.get(value, sample.median_ms))
    data = {
        "x": [s.candidate.parameters[parameter.name] for s in samples],
        "y": [s.median_ms for s in samples],
        "set": [set_text(s.candidate.parameters) for s in samples],
    }
    dots = figure.scatter("x", "y", source=data, size=5, color=SAMPLE_COLOUR, alpha=0.8)
    figure.select_one(HoverTool).renderers = [dots]
    known = [value for value in values if value in fastest_ms]
    best_ms = [fastest_ms[value] for value in known]
    figure.line(known, best_ms, line_width=2, color=BEST_COLOUR)
    figure.scatter(known, best_ms, size=7, color=BEST_COLOUR)
    words = _listed([f"{value}: {fastest_ms[value]:.4g} ms" for value in known])
    return Plot(f"Time against {parameter.name}", f"The line is the fastest of each value. {words}.", figure)


def predicted_against_measured(samples: Sequence[Measured]) -> Plot:
    """Predictions against measurements; coloured by round."""
    from bokeh.transform import linear_cmap

    title = "Predicted against measured"
    known = [s for s in samples if (s.candidate.predicted_ms or 0) > 0]
    if not known:
        return Plot(title, "No plot: the cost model has predicted no schedule that was timed.")
    figure = make_figure(
        "measured (ms)",
        "predicted (ms)",
        x_axis_type="log",
        y_axis_type="log",
        tooltips=[("schedule", "@sample"), ("round", "@round"), ("measured", "@x ms"), ("predicted", "@y ms")],
    )
    rounds = [s.candidate.round_index for s in known]
    data = {
        "x": [s.median_ms for s in known],
        "y": [s.candidate.predicted_ms for s in known],
        "round": rounds,
        "sample": [s.candidate.sample for s in known],
    }
    colours = linear_cmap("round", _middle_of_viridis(), min(rounds), max(max(rounds), min(rounds) + 1))
    figure.scatter("x", "y", source=data, size=5, color=colours, alpha=0.8)
    rho = _correlation(known)
    told = "" if rho is None else f"; rank correlation (Spearman's ρ) {rho:.2f}"
    return Plot(title, f"{len(known)} schedules{told}. Later rounds are lighter.", figure)


def rank_correlation(samples: Sequence[Measured]) -> Plot:
    """Spearman's rank correlation of prediction and measurement within each round."""
    from bokeh.models import Range1d

    title = "Rank correlation of a round's predictions"
    by_round = correlation_by_round(samples)
    if not by_round:
        return Plot(title, f"No plot: no round has {_FEWEST_FOR_A_CORRELATION} schedules with a prediction.")
    figure = make_figure(
        "round", "rank correlation (Spearman's ρ)", tooltips=[("ρ", "@y{0.00}")], y_range=Range1d(-1.05, 1.05)
    )
    xs, ys = list(by_round), list(by_round.values())
    figure.line(xs, ys, line_width=2, color=BEST_COLOUR)
    figure.scatter(xs, ys, size=7, color=BEST_COLOUR)
    figure.xaxis.ticker.min_interval = 1  # rounds are whole
    return Plot(title, _listed([f"round {index}: {rho:.2f}" for index, rho in by_round.items()]) + ".", figure)


def correlation_by_round(samples: Sequence[Measured]) -> dict[int, float]:
    """Round → Spearman's ρ of its predictions and measurements, without rounds with too few schedules."""
    by_round: dict[int, list[Measured]] = {}
    for sample in samples:
        if sample.candidate.predicted_ms is not None:
            by_round.setdefault(sample.candidate.round_index, []).append(sample)
    found = {
        index: _correlation(members)
        for index, members in sorted(by_round.items())
        if len(members) >= _FEWEST_FOR_A_CORRELATION
    }
    return {index: value for index, value in found.items() if value is not None}


def _correlation(samples: Sequence[Measured]) -> float | None:
    return spearman(np.array([s.candidate.predicted_ms for s in samples]), np.array([s.median_ms for s in samples]))


def device_health(run: RecordedRun) -> list[Plot]:
    """The canary and the temperature of every device during the run; says so where there are no readings."""
    canaries_ms: dict[str, list[tuple[float, float]]] = {}
    for sample in run.samples:
        if sample.canary_s:
            canaries_ms.setdefault(sample.device, []).append(
                ((sample.at_unix_s - run.start_unix_s) / 60, min(sample.canary_s) * 1e3)
            )
    temperatures_c: dict[str, list[tuple[float, float]]] = {}
    for reading in run.readings:
        temperatures_c.setdefault(reading.device, []).append((reading.elapsed_s / 60, reading.hottest_c))
    return [
        _lines_by_device("Canary: a fixed computation timed beside each schedule", "ms", canaries_ms),
        _lines_by_device("Temperature of the hottest sensor", "°C", temperatures_c),
    ]


def _lines_by_device(title: str, unit: str, points: Mapping[str, Sequence[tuple[float, float]]]) -> Plot:
    if not points:
        return Plot(title, "No plot: no device has told it.")
    figure = make_figure("minutes since the start", unit, tooltips=[("device", "$name"), (unit, "@y")])
    legend = dict(zip(points, line_styles(), strict=False))
    told = []
    for device, places in points.items():
        xs, ys = zip(*places, strict=True)
        colour, dash = legend[device]
        figure.line(list(xs), list(ys), color=colour, line_dash=dash, line_width=1.5, name=device)
        told.append(f"{device}: {min(ys):.4g} to {max(ys):.4g} {unit}")
    return Plot(title, _listed(told) + ".", figure, legend)


def _middle_of_viridis() -> list[str]:
    """Without the ends, which the dark and the light page would swallow."""
    from bokeh.palettes import Viridis256

    return list(Viridis256[80:165])


def _listed(texts: Sequence[str]) -> str:
    return "; ".join(texts if len(texts) <= _MOST_IN_WORDS else (texts[0], "…", texts[-1]))
