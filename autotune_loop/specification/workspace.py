"""The folders, cores and connections of a machine that a run, a worker or a command uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from halide_autotune.devices.local.cores import CorePlan
from halide_autotune.devices.remote_place import ConnectionSettings


@dataclass(frozen=True)
class Workspace:
    """This machine.

    Attributes:
        cache_folder: content-addressed files kept across runs.
        lock_folder: has the locks with which building and measuring take turns.
        environment: of every child process.
        work_folder: scratch space of a run, or with a folder for each run.
        cores: which cores build, and which measure on this machine.
        connections: settings of SSH and ADB connections; None if none are made.
        memory_bytes: the most that one build may use; None leaves that to the run.
        ndk_root: the Android NDK to link with; None if there is none, or its programs would not run.
    """

    cache_folder: Path
    lock_folder: Path
    environment: Mapping[str, str] = field(repr=False)
    work_folder: Path = Path()
    cores: CorePlan = field(default_factory=lambda: CorePlan(frozenset(), frozenset()))
    connections: ConnectionSettings | None = None
    memory_bytes: int | None = None
    ndk_root: Path | None = None
