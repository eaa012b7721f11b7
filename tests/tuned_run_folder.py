"""A run folder with a winner that Halide scheduled for a real generator; only its times are made up."""

from __future__ import annotations

import tempfile
from pathlib import Path

from autotune_loop.candidate import Candidate, Origin, SearchPoint
from autotune_loop.store.run_store import RunStore
from devices.device import Clock
from devices.timing.measurement import Measurement
from targets.generator.program import GeneratorProgram
from targets.generator.run import GeneratedFiles, GeneratorRequest, run_generator
from targets.halide_install import HalideInstall
from targets.process.content_cache import file_sha256
from targets.process.limited_process import ProcessLimits
from targets.profile.profile import TargetProfile
from targets.schedule.autoschedulers import mullapudi2016
from tests.run_specs import make_record, make_spec, make_task

LIMITS = ProcessLimits(time_s=120.0, memory_bytes=4 * 2**30)
DEFAULT_S, TUNED_S = 0.004, 0.001
ESTIMATE = {"ratio": 0.25, "low": 0.2, "high": None}


def write_tuned_run(
    folder: Path,
    generator_file: Path,
    program: GeneratorProgram,
    profile: TargetProfile,
    halide: HalideInstall,
    parameters: dict[str, str] | None = None,
    **facts: object,
) -> Path:
    """A run of the one generator of `program`, won by Mullapudi2016's schedule; returns `folder`."""
    name = program.names[0]
    task = make_task(name, generator_file, parameters)
    record = make_record(
        make_spec(task, profile=profile, parallelism=2),
        generator_sha256=(file_sha256(generator_file),),
        halide_version=halide.version,
        devices=(profile.device_kind,),
        **facts,
    )
    store = RunStore(folder, record, resume=False)
    try:
        for sample, (origin, time_s) in enumerate([(Origin.FULL_BEAM, DEFAULT_S), (Origin.RANDOM, TUNED_S)]):
            symbol = f"{name}_r0_a0_s{sample}"
            point = SearchPoint(origin, sample, 32, 100, store.updated_weights)
            store.database.add_candidate(Candidate(0, 0, sample, symbol, point, str(sample), 0.1))
            # The turn that chose among the schedules, then two that decided.
            for purpose, share in (("sample", 0.8), ("play-off", 0.9), ("play-off", 0.99), ("play-off", 1.01)):
                measurement = Measurement(symbol, "secret-board", Clock.WALL, (time_s * share,), "time", True)
                store.database.add_measurement(measurement, purpose, 0.1)
        store.database.add_verdict(0, {"reason": "faster", "turns": 2, "estimate": ESTIMATE})
        store.write_best(
            0,
            _schedule(program, profile, halide, parameters or {}, folder),
            "1 ms (wall time, median) for batch_0_0/1\n",
        )
    finally:
        store.close()
    return folder


def _schedule(
    program: GeneratorProgram, profile: TargetProfile, halide: HalideInstall, parameters: dict[str, str], folder: Path
) -> Path:
    output = Path(tempfile.mkdtemp(dir=folder))
    name = program.names[0]
    autoscheduler = mullapudi2016(halide, 2, profile.machine)
    request = GeneratorRequest(
        name, name, name, output, ("schedule",), profile.halide_target, parameters, autoscheduler
    )
    result = run_generator(program, request, LIMITS)
    assert isinstance(result, GeneratedFiles), result
    return result.files["schedule"]
