"""For tests: a process that writes into a run folder and says what is committed, until it is killed.

    python -m tests.contract.writing_process FOLDER FIRST_ROUND

It prints a line when the folder is open, then one after every commit.
"""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

from halide_autotune.autotune_loop.candidate import Candidate, Origin, SearchPoint
from halide_autotune.autotune_loop.store.published import Published, ScheduleTime
from halide_autotune.autotune_loop.store.run_record import FILE_NAME
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.devices.device import Clock
from halide_autotune.devices.timing.measurement import Measurement
from tests.run_specs import make_record

RECORD = make_record()
HEADER = """#include "Halide.h"
inline void apply_schedule_blur(::Halide::Pipeline pipeline, ::Halide::Target target) {{
{body}
}}
// the end
"""


def candidate(folder: Path, round_index: int, sample_index: int) -> Candidate:
    point = SearchPoint(Origin.RANDOM, sample_index, 1, 5, folder / "used.weights", 0.1)
    return Candidate(
        round_index=round_index,
        task_index=0,
        sample_index=sample_index,
        symbol=symbol(round_index, sample_index),
        point=point,
        schedule_sha256=f"{round_index}/{sample_index}",
        search_s=0.25,
        predicted_ms=1.5,
    )


def symbol(round_index: int, sample_index: int) -> str:
    return f"blur_r{round_index}_a0_s{sample_index}"


def measurement(kernel: str, median_s: float) -> Measurement:
    return Measurement(kernel, "local", Clock.WALL, (median_s, median_s, median_s), "precision", True)


def main() -> None:
    folder, round_index = Path(sys.argv[1]), int(sys.argv[2])
    store = RunStore(folder, RECORD, resume=(folder / FILE_NAME).exists())
    print("open", flush=True)
    header = store.work / "emitted.schedule.h"
    for index in count():
        made = candidate(store.candidate_folder(round_index, 0, index), round_index, index)
        store.database.add_candidate(made)
        print("candidate", made.symbol, flush=True)
        store.database.add_measurement(measurement(made.symbol, 1e-3 / (index + 1)), "sample", 0.5)
        print("measured", made.symbol, flush=True)
        header.write_text(HEADER.format(body="    // filling\n" * (index % 50 * 100)))
        time = ScheduleTime(1.0 / (index + 1), 0.0)
        published = Published(made.sample, made.symbol, confirmed=False, reason="", message="", tuned=time)
        store.publish(0, header, published, "wall")


if __name__ == "__main__":
    main()
