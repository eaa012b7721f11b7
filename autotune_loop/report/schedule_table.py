"""The table of every schedule of a run, with what each does, packed for a page."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence

from halide_autotune.autotune_loop.candidate import Measured, found_by
from halide_autotune.autotune_loop.parameters.space import set_text
from halide_autotune.autotune_loop.report.recorded_run import RecordedRun
from halide_autotune.autotune_loop.specification.tuning_task import sample_file_name

# The page stays below 5 MB: beyond this size the slowest schedules have no text.
_SCHEDULE_TEXTS_BYTES = 1_500_000
_LARGEST_HEADER_BYTES = 1_000_000

# Title, and what is in it: "text", "number", or "ms", a time in milliseconds.
COLUMNS = (
    ("schedule", "text"),
    ("set", "number"),
    ("time (ms)", "ms"),
    ("timings", "number"),
    ("spread (%)", "number"),
    ("predicted (ms)", "ms"),
    ("found by", "text"),
    ("device", "text"),
    ("after (s)", "number"),
)


def schedule_rows(run: RecordedRun) -> list[Sequence[object]]:
    """A row of `COLUMNS` for each schedule, fastest first within an argument set."""
    return [
        (
            (one := measured.candidate).sample,
            one.task_index + 1,
            round(measured.median_ms, 6),
            measured.processes,
            round(100 * measured.spread_ms / measured.median_ms, 1),
            None if one.predicted_ms is None else round(one.predicted_ms, 6),
            found_by(one.point) + (" (default)" if one.is_default else ""),
            measured.device,
            round(measured.at_unix_s - run.start_unix_s, 1),
        )
        for measured in _fastest_first(run)
    ]


def packed_texts(run: RecordedRun) -> str:
    """The directives of every schedule in the table's order, as deflated JSON in base64.

    They are similar, so that thousands fit; texts beyond the limit are empty.
    """
    texts = [
        "\n".join(filter(None, (set_text(sample.candidate.parameters), _directives(header_text(run, sample)))))
        for sample in _fastest_first(run)
    ]
    while True:
        packed = zlib.compress(json.dumps(texts, ensure_ascii=False).encode(), 9)
        if len(packed) <= _SCHEDULE_TEXTS_BYTES or not any(texts):
            return base64.b64encode(packed).decode()
        kept = sum(1 for text in texts if text) // 2
        texts = [*texts[:kept], *[""] * (len(texts) - kept)]


def header_text(run: RecordedRun, sample: Measured) -> str:
    """A schedule's header; empty if the run no longer has it."""
    name = sample_file_name(run.record.spec.tasks)
    paths = [run.folder / "samples" / sample.candidate.sample / f"{name}.schedule.h"]
    paths += sorted(paths[0].parent.glob("*.schedule.h"))
    for path in paths:
        try:
            if path.stat().st_size <= _LARGEST_HEADER_BYTES:
                return path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
    return ""


def _fastest_first(run: RecordedRun) -> list[Measured]:
    return sorted(run.samples, key=lambda sample: (sample.candidate.task_index, sample.median_ms))


def _directives(header: str) -> str:
    """The lines between the braces of apply_schedule."""
    inside = header.partition("{")[2].rpartition("}")[0]
    return "\n".join(line.strip() for line in inside.splitlines() if line.strip())
