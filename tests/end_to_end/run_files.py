"""What a finished run folder must hold."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from halide_autotune.autotune_loop.run.result import TuneResult
from halide_autotune.autotune_loop.store.featurization import read_featurization
from halide_autotune.autotune_loop.store.run_database import RunDatabase
from halide_autotune.autotune_loop.store.sample_file import read_sample
from halide_autotune.sdk.checks.run_checks import check_run
from halide_autotune.weights.network import Network
from halide_autotune.weights.weights_file import read_weights


def rows(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    """What the run's database answers."""
    with closing(sqlite3.connect(f"file:{folder / 'tuning.db'}?mode=ro", uri=True)) as connection:
        return connection.execute(sql).fetchall()


def check_run_folder(result: TuneResult, name: str, clock: str, network: Network = Network.ADAMS2019) -> None:
    """Halide's layout, complete; what Halide's search found and was timed has its sample; nothing else is left."""
    folder = result.run_folder
    assert not [check for check in check_run(folder) if not check.passed]
    timed = rows(
        folder,
        "SELECT c.round, c.task, c.sample, m.median_ms * m.factor, m.relative, m.clock, m.output_checked, c.lineage"
        " FROM measurements m JOIN candidates c ON c.symbol = m.symbol WHERE m.purpose = 'sample'",
    )
    # Those that were timed beside a yardstick are on the run's scale, which its last timing has settled.
    with closing(RunDatabase(folder / "tuning.db")) as database:
        reported_ms = {measured.candidate.sample: measured.median_ms for measured in database.measured()}
    assert len(timed) == result.totals.samples_timed > 0
    samples = {path.relative_to(folder / "samples") for path in (folder / "samples").rglob("*.sample")}
    assert samples == {Path(f"batch_{r}_{a}/{s}/{name}.sample") for r, a, s, *_, lineage in timed if lineage is None}, (
        "schedules made as data have no features that Halide's cost model could learn from"
    )
    for r, a, s, alone_ms, relative, written_clock, checked, lineage in timed:
        beside = folder / "samples" / f"batch_{r}_{a}" / str(s)
        check_header(beside / f"{name}.schedule.h", name)
        assert written_clock == clock and checked == 1
        if lineage is not None:
            continue
        sample = read_sample(beside / f"{name}.sample", network)
        median_ms = alone_ms if relative is None else reported_ms[f"batch_{r}_{a}/{s}"]
        assert abs(sample.runtime_ms - median_ms) <= 1e-5 * median_ms
        features = read_featurization(beside / f"{name}.featurization", network)
        assert sample.featurization.schedule_sha256 == features.schedule_sha256
    hashes = rows(folder, "SELECT task, schedule_sha256 FROM candidates WHERE origin = 'random search'")
    assert len(hashes) == len(set(hashes)), "a schedule was built twice"
    for path in (*(folder / "samples").glob("batch_*/used.weights"), folder / "samples" / "updated.weights"):
        read_weights(path)
    assert not (folder / "work").exists()
    assert not [path for path in folder.rglob(".*") if path.name != ".lock"], "something half-written is left"


def check_header(path: Path, name: str) -> None:
    """A portable header: its function's name, no path of this machine."""
    text = path.read_text()
    assert f"inline void apply_schedule_{name}(" in text
    assert not re.search(r"weights_path|/tmp/|/home/|\.weights", text)
