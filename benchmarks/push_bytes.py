"""Bytes that go to a device for a batch of schedules: one executable for the batch, against one for each schedule.

    python -m benchmarks.push_bytes --schedules 32

Both are built from the same kernels with the same runner and runtime, and pushed over SSH through a proxy that counts
what passes on the wire, after the connection is made and the agent is there. Goal: at least 5 times fewer.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from halide_autotune.sdk.project.preparation import open_named_generator, open_workbench
from halide_autotune.sdk.settings import Settings, read_settings
from halide_autotune.targets.build.artifacts import KernelRecipe, build_kernel
from halide_autotune.targets.build.executable import BuildTools, Executable, link_executable
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.schedule.autoschedulers import ScheduleChoice, profile_autoscheduler
from halide_autotune.targets.toolchain.c_toolchain import open_toolchain
from tests.fault_proxy import Direction
from tests.remote_board import SshBoard, ssh_board

GOAL = 5.0
PROFILE = "x86-64"


def main() -> int:
    """Push both ways and print the ratio; exit code 1 when it is below the goal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("generator", nargs="?", default="examples/separable_filter.py")
    parser.add_argument("--schedules", type=int, default=32)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    settings = read_settings()
    with tempfile.TemporaryDirectory(prefix="sdk-push-") as text:
        batch, singles = build(arguments.generator, arguments.schedules, Path(text), settings)
        with ssh_board(Path(text) / "board") as board:
            together = pushed_bytes(board, [batch], settings)
            apart = pushed_bytes(board, singles, settings)
    ratio = apart / together
    if arguments.json:
        print(json.dumps({"ratio": ratio, "goal": GOAL, "batch_bytes": together, "single_bytes": apart}, indent=2))
    else:
        print(f"{arguments.schedules} schedules: {together:,} bytes in one executable, {apart:,} in one for each")
        print(f"{ratio:.1f} times fewer (goal {GOAL:g})")
    return 0 if ratio >= GOAL else 1


def build(generator: str, count: int, folder: Path, settings: Settings) -> tuple[Executable, list[Executable]]:
    """The same kernels in one executable, and each in one of its own."""
    profile = load_profile(PROFILE, settings.profile_folder)
    bench = open_workbench(settings)
    tools = BuildTools(bench.halide, bench.cache, open_toolchain(profile, settings.cache_folder, None))
    kernels = []
    with open_named_generator(generator, (), bench, settings) as (reference, program):
        assert reference.name is not None
        for seed in range(count):
            random = {"beam_size": "1", "random_dropout": "50", "random_dropout_seed": str(seed)}
            search = profile_autoscheduler(bench.halide, profile, 1, random)
            choice = ScheduleChoice(f"seed {seed}", search)
            recipe = KernelRecipe(program, reference.name, f"schedule_{seed}", reference.parameters, profile, choice)
            kernels.append(build_kernel(recipe, folder))
    batch = link_executable(kernels, profile.halide_target, tools, folder / "batch")
    singles = [
        link_executable([kernel], profile.halide_target, tools, folder / f"single_{index}")
        for index, kernel in enumerate(kernels)
    ]
    return batch, singles


def pushed_bytes(board: SshBoard, executables: Sequence[Executable], settings: Settings) -> int:
    """What passes on the wire to the board for these files."""
    transport = board.transport(open_workbench(settings).cache)
    with contextlib.closing(transport):
        transport.open()
        before = board.proxy.bytes_passed(Direction.TO_SERVER)
        for executable in executables:
            transport.push(executable.path, executable.path.name)
        return board.proxy.bytes_passed(Direction.TO_SERVER) - before


if __name__ == "__main__":
    sys.exit(main())
