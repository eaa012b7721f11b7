"""The picture of a run that is under way, as large as the terminal allows."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from halide_autotune.autotune_loop.events import Notice, RunStarted, Trained
from halide_autotune.autotune_loop.store.published import timings_text
from halide_autotune.devices.device import Clock
from halide_autotune.sdk.display.display import STOPPING
from halide_autotune.sdk.display.event_lines import clock_message
from halide_autotune.sdk.display.quantities import (
    TimeUnit,
    count_text,
    duration_text,
    rate_text,
    share_text,
    speed_up_text,
    unit_of,
)
from halide_autotune.sdk.display.run_progress import BatchRecord, RunProgress, StageProgress, Standing
from halide_autotune.sdk.output import shown_path

_LABEL_WIDTH = 10
_BAR_NOTE_WIDTH = 26
_BORDER_ROWS = 2
_FIXED_ROWS = 15
_FEWEST_NOTICES, _MOST_NOTICES = 2, 6
_MOST_ARGSETS = 6
_HISTORY_HEADER_ROWS = 1
_TELLING_HISTORY_ROWS, _MOST_HISTORY_ROWS = 2, 12
_HOW_TO_STOP = "Ctrl-C stops the run and keeps the best"
_STAGES = ("search", "build", "measure")


def live_view(progress: RunProgress, width: int, height: int) -> RenderableType:
    """Return everything about the run in one frame, as high as the last one.

    Args:
        width, height: of the terminal, in characters; the frame leaves one row free.
    """
    started = progress.started
    if started is None:
        return Text("starting")
    inner_width = width - 4
    # One row stays free for what the terminal itself writes, such as ^C.
    rows = height - _BORDER_ROWS - _FIXED_ROWS - 1
    standings = _standings(progress, started, max(2, min(_MOST_ARGSETS, rows)), inner_width)
    rows -= len(standings) - 2
    history_rows = min(_MOST_HISTORY_ROWS, rows - _FEWEST_NOTICES - _HISTORY_HEADER_ROWS - 1)
    parts: list[RenderableType] = [_heading(progress, started, inner_width), Text()]
    parts += [_bars(progress, started, inner_width), Text(), *standings, *_learning(progress), Text()]
    if history_rows >= _TELLING_HISTORY_ROWS:
        parts += [_history(progress, started, history_rows), Text()]
        rows -= history_rows + _HISTORY_HEADER_ROWS + 1
    parts += _notices(progress, max(0, min(_MOST_NOTICES, rows)), inner_width)
    return Panel(
        Group(*parts),
        box=box.ROUNDED,
        title=Text.assemble(("sdk autotune", "bold"), f"  {started.generator} for {started.target}"),
        title_align="left",
        subtitle=_subtitle(progress),
        subtitle_align="right",
        border_style="yellow" if progress.stopping else "cyan",
    )


def _subtitle(progress: RunProgress) -> Text:
    if progress.stopping:
        return Text(STOPPING.text, style="bold yellow")
    finishing = progress.finishing()
    return Text(f"the time is up; finishing {finishing}" if finishing else _HOW_TO_STOP)


def _heading(progress: RunProgress, started: RunStarted, width: int) -> RenderableType:
    emulated = not Clock(started.clock).is_device_time
    clock = Text(f" {clock_message(started.clock)} ", "bold black on yellow" if emulated else "")
    threads = count_text(started.parallelism, started.parallel_unit)
    device = _line("device", f"{started.device}, {threads},").append_text(clock)
    folder = _line("folder", _shortened(shown_path(started.run_folder), width - _LABEL_WIDTH))
    stage = progress.stages.get("play-off") or progress.stages.get("measure")
    newest = max([batch.done.round_index for batch in progress.batches[-1:]] + [stage.round_index if stage else 0])
    round_text = _line("round", str(newest + 1), "bold")
    round_text.append(f" of {started.length.rounds}, {count_text(started.length.batch_size, 'schedule')} each")
    over = "play-off" in progress.stages or progress.finishing()
    left = None if over else progress.time_left_s()
    text = f"elapsed {duration_text(progress.elapsed_s)}"
    if left is not None:
        text += f", {'at most' if left[1] else 'about'} {duration_text(left[0])} left"
    return Group(device, folder, _sides(round_text, Text(text)))


def _bars(progress: RunProgress, started: RunStarted, width: int) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=_LABEL_WIDTH - 2, style="dim", no_wrap=True)
    bar_width = max(10, width - _LABEL_WIDTH - 9 - 2 - _BAR_NOTE_WIDTH)
    table.add_column(width=bar_width)
    table.add_column(width=7, justify="right", no_wrap=True)
    table.add_column(width=_BAR_NOTE_WIDTH, style="dim", no_wrap=True, overflow="ellipsis")
    names = list(_STAGES)
    if "play-off" in progress.stages:
        names[-1] = "play-off"
    for name in names:
        stage = progress.stages.get(name)
        if stage is None:
            note = "preparing the reference" if name == "search" else ""
            table.add_row(name, ProgressBar(total=1, completed=0, width=bar_width), "", note)
            continue
        done = f"{stage.done}/{stage.wanted}" if stage.wanted else str(stage.done)
        bar = ProgressBar(total=max(1, stage.wanted), completed=stage.done, width=bar_width, finished_style="green")
        table.add_row(name[:_LABEL_WIDTH], bar, done, _bar_note(name, stage, started))
    return table


def _bar_note(name: str, stage: StageProgress, started: RunStarted) -> str:
    parts = [] if name == "play-off" else [f"round {stage.round_index + 1}"]
    if started.length.tasks > 1:
        parts.append(f"set {stage.task_index + 1}")
    return ", ".join([*parts, stage.note] if stage.note else parts)


def _standings(progress: RunProgress, started: RunStarted, most: int, width: int) -> list[RenderableType]:
    """Return two lines for one argument set, or a line each for several, up to the one that is being timed."""
    if started.length.tasks == 1:
        standing, unit = progress.standings.get(0, Standing()), progress.unit(0)
        default = "not timed yet" if standing.default_ms is None else unit.text(standing.default_ms, progress.mark)
        return [_line("default", default), _best_line(standing, unit, progress.mark, width)]
    measured = progress.stages.get("measure")
    newest = measured.task_index if measured is not None else 0
    first = max(0, newest - most + 1)
    shown = range(first, min(started.length.tasks, first + most))
    standings = {index: progress.standings.get(index, Standing()) for index in shown}
    unit = unit_of(standing.best_ms for standing in standings.values())
    return [_argset_line(index, standing, unit, progress.mark) for index, standing in standings.items()]


def _best_line(standing: Standing, unit: TimeUnit, mark: str, width: int) -> Text:
    if standing.best_ms is None:
        return _line("best", "nothing timed yet")
    line = _line("best", "").append(unit.text(standing.best_ms, mark), "bold").append("  ")
    between = "" if standing.best_range_ms is None else f", {' to '.join(map(unit.text, standing.best_range_ms))}"
    timings = f"{timings_text(standing.best_timings)}{between}"
    if standing.speed_up is not None and standing.speed_up <= 1:
        return line.append("the default is the best so far", "yellow").append(f"  {timings}", "dim")
    if standing.speed_up is not None:
        line.append(speed_up_text(standing.speed_up), "bold green").append("  ")
    line.append(f"{timings}  ", "dim")
    at = "" if standing.best_at_s is None else f" at {duration_text(standing.best_at_s)}"
    place = Text(f"{standing.best_sample}{at}", style="dim")
    return line.append_text(place) if line.cell_len + place.cell_len <= width else line


def _argset_line(index: int, standing: Standing, unit: TimeUnit, mark: str) -> Text:
    text = _line(f"set {index + 1}", "")
    if standing.best_ms is None:
        return text.append("nothing timed yet")
    text.append(unit.text(standing.best_ms, mark), "bold")
    gain = "" if standing.speed_up is None else f"  {speed_up_text(standing.speed_up)}"
    return text.append(gain, "bold green")


def _learning(progress: RunProgress) -> list[Text]:
    correlation = progress.rank_correlation()
    ranking = "unknown until three schedules are timed"
    if correlation is not None:
        ranking = f"rank correlation {correlation[1]:.2f} with the times of round {correlation[0] + 1}"
    model = "as at the start" if progress.training is None else _accuracy(progress.training)
    failures = ", ".join(f"{count} {kind}" for kind, count in progress.failures.most_common()) or "none"
    timed = count_text(progress.timed, "schedule")
    if progress.timed_before:
        timed += f", and {progress.timed_before} before the run was resumed"
    rate = progress.samples_per_minute
    return [
        _line("predicted", ranking),
        _line("model", model),
        _line("timed", timed + ("" if rate is None else f", {rate_text(rate)}")),
        _line("failed", failures, "red" if progress.failures else ""),
    ]


def _accuracy(training: Trained) -> str:
    after, before = training.accuracy_after, training.accuracy_before
    if after is None:
        return training.reason
    if training.accepted:
        return f"{share_text(after)} of pairs in the measured order, {share_text(before)} before training"
    return f"{share_text(before)} of pairs in the measured order; new ones rejected with {share_text(after)}"


def _history(progress: RunProgress, started: RunStarted, rows: int) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    mark = progress.mark
    for title in ("round", "timed", "failed", f"fastest{mark}", f"median{mark}", "rank corr.", "took"):
        table.add_column(title, justify="right", no_wrap=True)
    shown = progress.batches[-rows:]
    unit = unit_of(batch.best_ms for batch in shown)
    for batch in shown:
        table.add_row(*_history_row(batch, unit, started))
    for _ in range(rows - len(shown)):
        table.add_row()
    return table


def _history_row(batch: BatchRecord, unit: TimeUnit, started: RunStarted) -> list[str]:
    name = f"{batch.done.round_index + 1}"
    if started.length.tasks > 1:
        name += f" set {batch.done.task_index + 1}"
    best, median = ("" if value is None else unit.text(value) for value in (batch.best_ms, batch.median_ms))
    correlation = "" if batch.rank_correlation is None else f"{batch.rank_correlation:.2f}"
    counts = [str(batch.done.measured), str(batch.done.failed)]
    return [name, *counts, best, median, correlation, duration_text(batch.duration_s)]


def _notices(progress: RunProgress, rows: int, width: int) -> list[RenderableType]:
    newest = list(progress.notices)[-rows:] if rows else []
    shown: list[RenderableType] = [_notice(at_s, notice, width) for at_s, notice in newest]
    return shown + [Text()] * (rows - len(shown))


def _notice(at_s: float, notice: Notice, width: int) -> Text:
    line = Text.assemble(
        (f"{duration_text(at_s):{_LABEL_WIDTH + 2}}", "dim"),
        (" ".join(notice.text.split()), "yellow" if notice.warning else ""),
    )
    line.truncate(width, overflow="ellipsis")
    return line


def _line(label: str, text: str, style: str = "") -> Text:
    line = Text(no_wrap=True, overflow="ellipsis")
    return line.append(f"{label:{_LABEL_WIDTH}}", "dim").append(text, style)


def _sides(left: Text, right: Text) -> Table:
    table = Table.grid(expand=True, padding=(0, 0, 0, 2))
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column(no_wrap=True, justify="right")
    table.add_row(left, right)
    return table


def _shortened(text: str, width: int) -> str:
    """Return the end of the text, which says more than its beginning."""
    return text if len(text) <= width else f"...{text[-max(1, width - 3) :]}"
