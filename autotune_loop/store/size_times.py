"""What a schedule took at each size, in a run at several: the table `size_times` of `tuning.db`, which others lack."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict

from halide_autotune.autotune_loop.candidate import mean_by_size_ms
from halide_autotune.autotune_loop.store.schema import CANDIDATE_PURPOSES
from halide_autotune.devices.timing.measurement import Measurement
from halide_autotune.devices.timing.measurement_at_sizes import by_size

TABLE = "size_times"
SIZE_TIMES_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS {TABLE} (
    symbol TEXT NOT NULL, purpose TEXT NOT NULL, device TEXT NOT NULL, size TEXT NOT NULL, median_ms REAL NOT NULL,
    factor REAL NOT NULL, ratio REAL, repetitions_s TEXT NOT NULL, disturbed TEXT NOT NULL, beside TEXT NOT NULL,
    at_unix_s REAL NOT NULL)"""
HAS_SIZE_TIMES_SQL = f"SELECT count(*) FROM sqlite_master WHERE name = '{TABLE}'"
# In the order of timing; one timing has a row for each size.
SIZE_TIMES_SQL = (
    f"SELECT symbol, purpose, size, median_ms * factor FROM {TABLE}"
    f" WHERE purpose IN {CANDIDATE_PURPOSES} ORDER BY rowid"
)


def size_rows(measurement: Measurement, purpose: str) -> list[tuple[object, ...]]:
    """A row of the table, without its time, for each size; none where there is one size."""
    return [
        (
            measurement.kernel,
            purpose,
            measurement.device,
            size,
            one.median_s * 1e3,
            measurement.factor,
            one.ratio,
            json.dumps(one.repetitions_s),
            json.dumps(one.disturbed),
            "" if one.beside is None else json.dumps(asdict(one.beside)),
        )
        for size, one in by_size(measurement).items()
        if size
    ]


def settled_by_size(rows: Iterable[tuple[str, str, str, float]]) -> dict[str, Mapping[str, float]]:
    """Candidate → size → milliseconds there, from rows of `SIZE_TIMES_SQL`.

    Of a leader it is the mean over its race, or over what came after that.
    """
    times: dict[tuple[str, str], list[dict[str, float]]] = {}
    for symbol, purpose, size, time_ms in rows:
        timings = times.setdefault((symbol, purpose), [{}])
        if size in timings[-1]:
            timings.append({})
        timings[-1][size] = time_ms
    found: dict[str, Mapping[str, float]] = {}
    for purpose in CANDIDATE_PURPOSES:  # what comes after counts
        for (symbol, of), timings in times.items():
            if of == purpose:
                found[symbol] = mean_by_size_ms(timings)
    return found
