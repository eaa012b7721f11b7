"""A run folder as a run leaves it, written by the real store, with schedules that Halide emitted once."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from halide_autotune.autotune_loop.candidate import Candidate, Origin, SearchPoint
from halide_autotune.autotune_loop.events import SampleFailed
from halide_autotune.autotune_loop.specification.run_spec import RunSpec
from halide_autotune.autotune_loop.store.featurization import Featurization, format_featurization
from halide_autotune.autotune_loop.store.published import Published, ScheduleTime, SpeedUp
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.devices.device import Clock
from halide_autotune.devices.timing.measurement import Measurement
from halide_autotune.targets.halide_install import find_halide_install
from halide_autotune.targets.process.atomic_write import write_atomically
from halide_autotune.weights.baseline import baseline_weights
from halide_autotune.weights.network import Network
from halide_autotune.weights.weights_file import weights_sha256, write_weights
from tests.run_specs import make_record, make_spec, make_task

HEADERS = Path(__file__).parent / "unit" / "autotune_loop" / "schedule" / "headers"
_SAMPLES_A_ROUND = 32
_STAGES = 3


def write_run_folder(folder: Path, samples: int, *, spec: RunSpec | None = None, clock: str = "wall") -> None:
    """A run of `samples` schedules on two boards, a failure of each kind, two trainings; the same for equal calls."""
    source = random.Random(samples)
    features, speeds = _schedules(samples)
    headers = [path.read_text() for path in sorted(HEADERS.glob("*adams*.schedule.h"))]
    weights = baseline_weights(find_halide_install().plugin_path("Adams2019"))
    record = make_record(
        spec or make_spec(make_task("harris")), clock=clock, start_weights_sha256=weights_sha256(weights)
    )
    store = RunStore(folder, record, resume=False)
    database = store.database
    try:
        for number in range(samples):
            round_index, sample_index = divmod(number, _SAMPLES_A_ROUND)
            measured_ms = 8.0 * 2.0 ** (speeds[number] + source.gauss(1.0 / (1 + round_index), 0.1))
            origin = Origin.FULL_BEAM if number == 0 else Origin.RANDOM
            home = store.candidate_folder(round_index, 0, sample_index)
            home.mkdir(parents=True)
            write_atomically(store.featurization_path(home), format_featurization(features[number]))
            store.schedule_path(home).write_text(headers[number % len(headers)].replace("64", str(8 + number % 120)))
            symbol = f"harris_r{round_index}_a0_s{sample_index}"
            database.add_candidate(
                Candidate(
                    round_index=round_index,
                    task_index=0,
                    sample_index=sample_index,
                    symbol=symbol,
                    point=SearchPoint(origin, number, 32, 100, store.updated_weights),
                    schedule_sha256=features[number].schedule_sha256,
                    search_s=0.2,
                    predicted_ms=measured_ms * 2.0 ** source.gauss(0.0, 0.3),
                )
            )
            time_s = measured_ms / 1e3
            device = ("one", "two")[number % 2]
            database.add_measurement(
                Measurement(symbol, device, Clock.WALL, (time_s, time_s * 1.01), "precision", True, (1e-3, 1.01e-3)),
                "sample",
                0.3,
            )
        used = store.batch_folder(0, 0) / "used.weights"
        used.parent.mkdir(parents=True, exist_ok=True)
        for path in (used, store.start_weights, store.default_weights, store.updated_weights):
            write_weights(weights, path)
        is_learnt = record.spec.profile.autoscheduler.name in list(Network)
        for one in database.measured() if is_learnt else ():
            store.write_sample(store.training_sample(one, pipeline_id=1))
        if samples:
            default, tuned = ScheduleTime(6.5, 0.1, (6.3, 6.9), 8), ScheduleTime(4.0, 0.1, (3.9, 4.2), 8)
            published = Published(
                sample="batch_0_0/1",
                symbol="harris_r0_a0_s1",
                confirmed=True,
                reason="faster",
                message="It is 1.5 times as fast.",
                tuned=tuned,
                default=default,
                speed_up=SpeedUp(1.5, "default", 1.4, 1.6),
                by_device={"one": (6.5, 4.0), "two": (None, 4.5)},
            )
            winner = store.schedule_path(store.candidate_folder(0, 0, min(1, samples - 1)))
            store.publish(0, winner, published, clock)
        database.add_failure(SampleFailed(0, 0, None, "search", "crashed", "It <died>."), "log")
        scores = {"pairwise_accuracy": 0.5}
        database.add_weights(0, "", True, "better", {"before": scores, "after": {"pairwise_accuracy": 0.75}})
        for moment in ("before", "after"):
            database.add_device_state("one", moment, {"temperatures": [{"zone": 0, "type": "cpu", "celsius": 41.5}]})
    finally:
        store.close()


def _schedules(count: int) -> tuple[list[Featurization], list[float]]:
    """Features of one pipeline's schedules, and how slow each is: a little of everything in the features."""
    if count == 0:
        return [], []
    numbers = np.random.default_rng(count)
    pipeline = numbers.integers(0, 9, (_STAGES, 287)).astype(np.float32)
    logs = numbers.uniform(0, 12, (count, _STAGES, 39))
    slowness = logs.mean(axis=1) @ numbers.normal(0, 1, 39)
    slowness = (slowness - slowness.mean()) / (2 * float(slowness.std()) or 1.0)
    return [Featurization(np.exp(one).astype(np.float32), pipeline) for one in logs], slowness.tolist()
