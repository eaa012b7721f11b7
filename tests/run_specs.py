"""Run specifications and records for tests, right in every value that a test does not name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from halide_autotune.autotune_loop.specification.build_limits import BuildLimits
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.autotune_loop.specification.run_spec import RunSpec
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask
from halide_autotune.autotune_loop.specification.workspace import Workspace
from halide_autotune.autotune_loop.store.run_record import RunFacts, RunRecord
from halide_autotune.devices.device import Device
from halide_autotune.devices.local.cores import CorePlan
from halide_autotune.targets.generator.reference import GeneratorKind, GeneratorReference
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.profile.profile import TargetProfile


def make_task(name: str = "blur", file: Path | None = None, parameters: Mapping[str, str] | None = None) -> TuningTask:
    """One task of a Python generator."""
    reference = GeneratorReference(file or Path(f"/src/{name}.py"), GeneratorKind.PYTHON, name)
    return TuningTask(reference, name, parameters or {})


def make_spec(
    *tasks: TuningTask,
    profile: TargetProfile | str = "arm64",
    parallelism: int = 4,
    options: RunOptions | None = None,
) -> RunSpec:
    """What a run is asked."""
    profile = load_profile(profile) if isinstance(profile, str) else profile
    return RunSpec(tasks or (make_task(),), profile, parallelism, options or RunOptions())


def make_record(spec: RunSpec | None = None, **facts: object) -> RunRecord:
    """A run's record."""
    spec = spec or make_spec()
    made_with = {
        "halide_version": "21.0.0",
        "toolchain": "zig 0.14",
        "plugin_sha256": "p" * 64,
        "device": "devices of the inventory",
        "devices": ("one", "two"),
        "clock": "wall",
        "start_weights_sha256": "ab" * 32,
        "generator_sha256": tuple("cd" * 32 for _ in spec.tasks),
        **facts,
    }
    return RunRecord(spec, RunFacts(**made_with))  # type: ignore[arg-type]  # fields by name


def make_workspace(folder: Path, cores: CorePlan, environment: Mapping[str, str] | None = None) -> Workspace:
    """Everything below a folder."""
    return Workspace(folder / "cache", folder / "locks", environment or {}, folder / "work", cores)


def make_context(
    spec: RunSpec,
    devices: Sequence[Device],
    folder: Path,
    cores: CorePlan,
    environment: Mapping[str, str] | None = None,
) -> RunContext:
    """A run on this machine, with everything below a folder."""
    workspace = make_workspace(folder, cores, environment)
    return RunContext(spec, tuple(devices), spec.options.inputs, BuildLimits(), workspace)
