from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.targets.build.executable import BuildTools, Executable, KernelObject, link_executable
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.toolchain.zig import ZigToolchain
from tests.unit.targets.runner_kernels import KERNELS, compile_kernel

QEMU = ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")


@dataclass(frozen=True)
class Architecture:
    name: str
    halide_target: str
    triple: str
    emulator: tuple[str, ...]


X86 = Architecture("x86-64", "x86-64-linux-sse41", "x86_64-linux-gnu.2.28", ())
ARM = Architecture("arm64", "arm-64-linux", "aarch64-linux-gnu.2.28", QEMU)


@dataclass(frozen=True)
class RunnerResult:
    exit_code: int
    events: list[dict[str, Any]]
    stderr: str

    def one(self, event: str) -> dict[str, Any]:
        found = self.all(event)
        assert len(found) == 1, self.events
        return found[0]

    def all(self, event: str) -> list[dict[str, Any]]:
        return [item for item in self.events if item["event"] == event]


@dataclass(frozen=True)
class Runner:
    """Runs an executable, natively or emulated."""

    executable: Executable
    emulator: tuple[str, ...]

    def __call__(self, *arguments: str | Path) -> RunnerResult:
        command = [*self.emulator, str(self.executable.path), *(str(argument) for argument in arguments)]
        done = subprocess.run(command, capture_output=True, timeout=240, check=False)
        events = [json.loads(line) for line in done.stdout.decode().splitlines()]
        return RunnerResult(done.returncode, events, done.stderr.decode("utf-8", "replace"))


@dataclass(frozen=True)
class Workshop:
    """The real toolchains, with one cache for all tests of the session."""

    halide: HalideInstall
    cache: ContentCache

    def toolchain(self, architecture: Architecture) -> ZigToolchain:
        return ZigToolchain(architecture.triple, self.cache.root / "zig")

    def link(
        self, kernels: list[KernelObject], architecture: Architecture, output: Path, stop: StopSignal | None = None
    ) -> Executable:
        tools = BuildTools(self.halide, self.cache, self.toolchain(architecture))
        return link_executable(kernels, architecture.halide_target, tools, output, stop)


@pytest.fixture(scope="session")
def workshop(halide: HalideInstall, cache: ContentCache) -> Workshop:
    return Workshop(halide, cache)


@pytest.fixture(scope="session")
def runner_of(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Architecture], Runner]:
    """Gives the runner of an architecture, with all of `KERNELS` in it; linked once."""
    made: dict[str, Runner] = {}

    def get(architecture: Architecture) -> Runner:
        if architecture.name not in made:
            folder = tmp_path_factory.mktemp(architecture.name)
            kernels = [compile_kernel(name, architecture.halide_target, folder) for name in KERNELS]
            executable = workshop.link(kernels, architecture, folder / "batch")
            made[architecture.name] = Runner(executable, architecture.emulator)
        return made[architecture.name]

    return get


@pytest.fixture(params=[X86, ARM], ids=lambda architecture: architecture.name)
def runner(request: pytest.FixtureRequest, runner_of: Callable[[Architecture], Runner]) -> Runner:
    """Every test that uses this runs natively and under the emulator."""
    architecture = request.param
    if architecture.emulator and not shutil.which(architecture.emulator[0]):
        pytest.skip(f"{architecture.emulator[0]} is not installed")
    return runner_of(architecture)


@pytest.fixture
def native_runner(runner_of: Callable[[Architecture], Runner]) -> Runner:
    return runner_of(X86)
