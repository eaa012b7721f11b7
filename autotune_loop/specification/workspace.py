"""What of its machine a run, a worker or a command works with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from devices.local.cores import CorePlan
from devices.remote_place import ConnectionSettings


@dataclass(frozen=True)
class Workspace:
    """This machine.

    Attributes:
        cache_folder: content-addressed files kept across runs.
        lock_folder: where building and measuring take turns.
        environment: of every child process.
        work_folder: scratch space; of a run, or with a folder for each run.
        cores: which cores build, and which measure on this machine.
        connections: what of this machine SSH and ADB connections are made with; None where there are none.
        memory_bytes: what one build may use at most; None leaves that to the run.
        ndk_root: the Android NDK to link with; None where there is none, or where its programs would not run.
    """

    cache_folder: Path
    lock_folder: Path
    environment: Mapping[str, str] = field(repr=False)
    work_folder: Path = Path()
    cores: CorePlan = field(default_factory=lambda: CorePlan(frozenset(), frozenset()))
    connections: ConnectionSettings | None = None
    memory_bytes: int | None = None
    ndk_root: Path | None = None
