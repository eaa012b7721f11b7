"""Memory of a long run: resident set of the SDK's process and of the model's after every tenth of the rounds.

python -m benchmarks.memory_over_rounds --rounds 100
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import sdk

GROWTH_GOAL = 1.25


def main() -> int:
    """Print the resident sets; exit code 1 when the second half of the run grows by more than the goal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("generator", nargs="?", default="examples/corner_detector.cpp")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=4)
    arguments = parser.parse_args()
    sizes_bytes: list[int] = []

    def listen(event: sdk.Event) -> None:
        if event.kind == "batch_done":
            sizes_bytes.append(resident_bytes(os.getpid()))
            if len(sizes_bytes) % max(1, arguments.rounds // 10) == 0:
                children = ", ".join(f"{name} {size / 2**20:.0f} MiB" for name, size in children_bytes())
                print(f"round {len(sizes_bytes):4}: sdk {sizes_bytes[-1] / 2**20:.0f} MiB; {children}", flush=True)

    with tempfile.TemporaryDirectory(prefix="sdk-memory-") as folder:
        sdk.autotune(
            arguments.generator,
            options=sdk.RunOptions.of(
                no_history=True,
                rounds=arguments.rounds,
                weights="baseline",
                batch_size=arguments.batch_size,
                pool_factor=1.0,
            ),
            run_folder=Path(folder) / "run",
            listen=listen,
        )
    growth = sizes_bytes[-1] / sizes_bytes[len(sizes_bytes) // 2]
    print(f"growth over the second half: {growth:.3f} (goal: at most {GROWTH_GOAL})")
    return 0 if growth <= GROWTH_GOAL else 1


def resident_bytes(pid: int) -> int:
    """The resident set of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def children_bytes() -> list[tuple[str, int]]:
    """Name and resident set of this process's children that live long enough to be looked at."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            try:
                command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                module = next((part.decode() for part in command if b"." in part and b"/" not in part), "child")
                found.append((module.rpartition(".")[2], resident_bytes(int(pid))))
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found


if __name__ == "__main__":
    sys.exit(main())
