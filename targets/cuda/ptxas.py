"""NVIDIA's assembler `ptxas`: find it in its wheel or on PATH, and read what the assembled kernels need."""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.targets.errors import ToolchainError, os_error_as
from halide_autotune.targets.process.compiler_run import program_version
from halide_autotune.targets.process.limited_process import ProcessLimits, run_limited
from halide_autotune.targets.process.scratch_folder import scratch_folder
from halide_autotune.targets.process.stop_signal import StopSignal

INSTALL_HINT = "Install it with: pip install nvidia-cuda-nvcc-cu12"
_LIMITS = ProcessLimits(time_s=120.0, memory_bytes=4 * 2**30)
# In the wheels of CUDA 12, and of CUDA 13.
_IN_WHEELS = ("cuda_nvcc/bin/ptxas", "cu13/bin/ptxas")
_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(?:.*?, (\d+) bytes smem)?")
_VERSION = re.compile(r"release [\d.]+, V([\d.]+)")
_UNKNOWN_CARD = "is not defined for option 'gpu-name'"
_COMPLAINT = re.compile(r"^ptxas .*?(?:error|fatal) *: (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class AssembledKernel:
    """What one kernel needs from a card.

    Attributes:
        registers: of one thread.
        shared_bytes: static shared memory of one block.
        stack_bytes: local memory of one thread, with its spilled registers.
        spill_bytes: the spilled registers that one thread stores.
    """

    name: str
    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_bytes: int


@dataclass(frozen=True)
class AssemblyFailure:
    """Why the assembler failed.

    Attributes:
        message: its first error.
        concerns_card: it does not know the card's architecture; a newer one may.
    """

    message: str
    concerns_card: bool = False


def find_ptxas(environment: Mapping[str, str]) -> Path | None:
    """Return the assembler of NVIDIA's wheel in this Python, else on PATH; None if there is none."""
    package = importlib.util.find_spec("nvidia")
    for folder in (package.submodule_search_locations or ()) if package else ():
        for place in _IN_WHEELS:
            if (path := Path(folder) / place).is_file():
                return path
    found = shutil.which("ptxas", path=environment.get("PATH", ""))
    return Path(found) if found else None


def ptxas_version(ptxas: Path) -> str:
    """Return a version such as '12.9.86'.

    Raises:
        ToolchainError: it cannot be run, or is not ptxas.
    """
    return program_version(ptxas, "NVIDIA's assembler", INSTALL_HINT, _VERSION)


def assemble(
    ptxas: Path, ptx: bytes, architecture: str, stop: StopSignal | None = None
) -> list[AssembledKernel] | AssemblyFailure:
    """Assemble PTX for an architecture such as 'sm_86', and return what its kernels need. The code is not kept.

    Raises:
        ToolchainError: the assembler cannot be run.
    """
    with scratch_folder("ptxas") as folder:
        source = folder / "kernels.ptx"
        source.write_bytes(ptx)
        arguments = ["-v", f"-arch={architecture}", "-o", str(source.with_suffix(".cubin")), str(source)]
        with os_error_as(ToolchainError, f"NVIDIA's assembler {ptxas} cannot be run", next_step=INSTALL_HINT):
            outcome = run_limited([str(ptxas), *arguments], _LIMITS, environment={"TMPDIR": str(folder)}, stop=stop)
    if outcome.succeeded:
        return _kernels(outcome.log)
    complaint = _COMPLAINT.search(outcome.log)
    words = complaint[1].strip() if complaint else f"it {outcome.describe()}"
    return AssemblyFailure(words, _UNKNOWN_CARD in outcome.log)


def _kernels(log: str) -> list[AssembledKernel]:
    parts = _ENTRY.split(log)
    kernels = []
    for name, words in zip(parts[1::2], parts[2::2], strict=True):
        used = _USED.search(words)
        stack = [int(number) for number in found.groups()] if (found := _STACK.search(words)) else [0, 0, 0]
        if used is not None:
            kernels.append(AssembledKernel(name, int(used[1]), int(used[2] or 0), stack[0], stack[1]))
    return kernels
