"""A run folder with schedules of a real generator by Halide, decided as a run decides; only its times are made up."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path

from halide_autotune.autotune_loop.candidate import Candidate, Measured, Origin, SearchPoint
from halide_autotune.autotune_loop.measure.batch_measurer import TaskReference
from halide_autotune.autotune_loop.play_off.course import PlayOffCourse, Turn
from halide_autotune.autotune_loop.play_off.incumbent import Incumbent
from halide_autotune.autotune_loop.play_off.times import ProcessTime
from halide_autotune.autotune_loop.run.result import TunedSchedule
from halide_autotune.autotune_loop.run.task_state import TaskState
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.schedule.print_header import print_header
from halide_autotune.autotune_loop.shipping.run_schedule import RunSchedule
from halide_autotune.autotune_loop.shipping.run_winners import read_run_winners
from halide_autotune.autotune_loop.specification.objective import LOOKS, Objective
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.devices.device import Clock
from halide_autotune.devices.timing.measure_settings import Tolerance
from halide_autotune.devices.timing.measurement import Measurement
from halide_autotune.targets.generator.program import GeneratorProgram
from halide_autotune.targets.generator.run import AutoschedulerRequest, GeneratedFiles, GeneratorRequest, run_generator
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.content_cache import file_sha256
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.profile.profile import TargetProfile
from halide_autotune.targets.schedule.autoschedulers import li2018, mullapudi2016
from tests.run_specs import make_record, make_spec, make_task

LIMITS = ProcessLimits(time_s=120.0, memory_bytes=4 * 2**30)
BOARD = "secret-board"
DEFAULT_S, TUNED_S = 0.004, 0.001
# As the rounds have timed it once, by luck; the turns of the play-off say otherwise.
LUCKY_S = 0.0008


class Ending(Enum):
    """How the play-off ends."""

    CONFIRMED = "batch_0_0/1"
    UNCONFIRMED = "batch_0_0/1, unconfirmed"
    DEFAULT_STAYS = "default"
    INCUMBENT_STAYS = "incumbent"
    OWN_STAYS = "own"


def write_tuned_run(
    folder: Path,
    generator_file: Path,
    program: GeneratorProgram,
    profile: TargetProfile,
    halide: HalideInstall,
    parameters: dict[str, str] | None = None,
    *,
    ending: Ending = Ending.CONFIRMED,
) -> TunedSchedule:
    """A run of the one generator of `program`: Li2018's schedule as the default, Mullapudi2016's as the sample."""
    name, parameters = program.names[0], parameters or {}
    task = make_task(name, generator_file, parameters)
    record = make_record(
        make_spec(task, profile=profile, parallelism=2),
        generator_sha256=(file_sha256(generator_file),),
        halide_version=halide.version,
        devices=(profile.device_kind,),
    )

    def header(autoscheduler: AutoschedulerRequest) -> str:
        return schedule_of(autoscheduler, program, profile, parameters)

    store = RunStore(folder, record, resume=False)
    try:
        state = TaskState(0, task, TaskReference(None, Tolerance(), 1))
        headers = [header(li2018(halide, 2)), header(mullapudi2016(halide, 2, profile.machine))]
        for number, (text, time_s) in enumerate(zip(headers, (DEFAULT_S, LUCKY_S), strict=True)):
            symbol = f"{name}_r0_a0_s{number}"
            point = SearchPoint((Origin.FULL_BEAM, Origin.RANDOM)[number], number, 32, 100, store.updated_weights)
            candidate = Candidate(0, 0, number, symbol, point, str(number), 0.1)
            store.database.add_candidate(candidate)
            home = store.samples / candidate.sample
            home.mkdir(parents=True)
            store.schedule_path(home).write_text(text)
            measurement = Measurement(symbol, BOARD, Clock.WALL, (time_s,), "time", True)
            store.database.add_measurement(measurement, "sample", 0.1)
            if state.add(Measured.of(candidate, measurement, paired_ms=None)):
                state.publish_best(store, "wall")
        if ending in (Ending.INCUMBENT_STAYS, Ending.OWN_STAYS):
            kept = store.keep_header(ending.value, 0, headers[0])
            state.incumbent = Incumbent(ending.value, f"{name}_{ending.value}_a0", kept)
        return state.decide(store, _course(state, store, ending).run(), "wall")
    finally:
        store.close()


def _course(state: TaskState, store: RunStore, ending: Ending) -> PlayOffCourse:
    """A play-off in which the default drifts, so that the ratio of two medians is not the ratio of the pairs."""
    default, tuned = sorted(timed.symbol for timed in state.timed)
    labels = {default: "the default", tuned: "batch_0_0/1"}
    ratios = {default: 1.0, tuned: 1.1 if ending is Ending.DEFAULT_STAYS else TUNED_S / DEFAULT_S}
    baseline = default
    if state.incumbent is not None:
        baseline = state.incumbent.symbol
        labels[baseline] = state.incumbent.label
        ratios = {baseline: 1.0, tuned: 1.25, default: 5.0}

    done: list[Turn] = []

    def time_turn(order: Sequence[str], yardstick: str | None) -> Turn:
        drift = 1 + 0.02 * len(done)
        times = {}
        for symbol in order:
            slower = drift if symbol == default else 1.0
            noise = 0.0 if symbol == baseline else 0.001 * (len(done) % 3)
            process = ProcessTime(DEFAULT_S * ratios[symbol] * slower, ratios[symbol] * (1 + noise))
            times[symbol] = process
            measurement = Measurement(symbol, BOARD, Clock.WALL, (process.median_s,), "time", True)
            store.database.add_measurement(measurement, "play-off", 0.1)
        done.append(Turn({BOARD: times}))
        return done[-1]

    time_left_s: Callable[[], float] = (lambda: 0.0) if ending is Ending.UNCONFIRMED else (lambda: math.inf)
    return PlayOffCourse(
        labels,
        baseline,
        Objective(),
        seed=1,
        time_turn=time_turn,
        time_left_s=time_left_s,
        devices=[BOARD],
        most_turns=LOOKS[0],
        also_timed=default,
    )


def read_run_schedules(folder: Path) -> list[RunSchedule]:
    """The winners of a run that tunes no parameters."""
    return [winner for winner in read_run_winners(folder) if isinstance(winner, RunSchedule)]


def schedule_of(
    autoscheduler: AutoschedulerRequest,
    program: GeneratorProgram,
    profile: TargetProfile,
    parameters: dict[str, str] | None = None,
) -> str:
    """A header of the one generator of `program`; printed again, because Li2018's own does not compile."""
    name = program.names[0]
    with tempfile.TemporaryDirectory() as folder:
        request = GeneratorRequest(
            name, name, name, Path(folder), ("schedule",), profile.halide_target, parameters or {}, autoscheduler
        )
        result = run_generator(program, request, LIMITS)
        assert isinstance(result, GeneratedFiles), result
        return print_header(parse_schedule(result.files["schedule"].read_text()), name)
