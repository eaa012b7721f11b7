"""How much of a farm's devices the executor leaves to their users: measurements a second against linear.

    python -m benchmarks.farm_throughput             1, 8 and 64 devices, two minutes
    python -m benchmarks.farm_throughput --full      256, too; its processes want some 3 cores at 1 s a measurement
    python -m benchmarks.farm_throughput --memory    resident memory over 100,000 measurements

Devices only wait, for as long as timing a schedule takes; the scheduler, the workers and the client are real, and every
result goes into a run's database. Each device's turns are counted in a window in which all are busy. The executor's
overhead is the time by which a turn is longer than its measurement. Goals: 95 % of linear, and memory that is flat.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.waiting_farm import WaitingRun, cpu_s, device_names, resident_bytes, stand_in, waiting_farm

GOAL = 0.95
# In the second half; the first fills caches and logs of fixed length.
GROWTH_GOAL_BYTES = 2 * 2**20
_SETTLING_S = 6.0
_SETTLING_LIMIT_S = 120.0
# More than there is time for.
_MANY = 50_000
_LEAST_TURNS = 5
_MEMORY_DEVICES = 64
_MEMORY_HOLD_S = 0.05
_MEMORY_BATCH = 2_000


def throughput(devices: int, hold_s: float, window_s: float, workers: int, here: bool) -> dict[str, Any]:
    """Keep every device busy for a while, and see how many measurements each does in a window of that."""
    names = device_names(devices)
    with tempfile.TemporaryDirectory(prefix="sdk-farm-") as text, contextlib.ExitStack() as exits:
        folder = Path(text)
        processes = {"client": os.getpid()}
        address = None
        if not here:
            farm = exits.enter_context(waiting_farm(folder, devices, min(workers, devices)))
            processes["scheduler"] = farm.scheduler.pid
            processes |= {name: process.pid for name, process in farm.workers.items()}
            address = farm.address
        run = exits.enter_context(WaitingRun(folder / "run", names, address))
        cpu_ms = _watch(run, hold_s, window_s, processes)
    if set(run.measured.values()) != {1}:
        raise RuntimeError(f"counted twice: {[name for name, times in run.measured.items() if times > 1][:5]}")
    ends_s = [run.ends_s.get(name, []) for name in names]
    if any(len(each) < _LEAST_TURNS for each in ends_s):
        raise RuntimeError("a device has done next to nothing: give a longer --window")
    turns_s = [(each[-1] - each[0]) / (len(each) - 1) for each in ends_s]
    return {
        "devices": devices,
        "hold_s": hold_s,
        "measurements": sum(map(len, ends_s)),
        "a_second": sum(1 / turn_s for turn_s in turns_s),
        "of_linear": statistics.fmean(hold_s / turn_s for turn_s in turns_s),
        "overhead_ms": 1e3 * (statistics.fmean(turns_s) - hold_s),
        "cpu_ms": cpu_ms,
        "load": os.getloadavg()[0],
    }


def _watch(run: WaitingRun, hold_s: float, window_s: float, processes: dict[str, int]) -> dict[str, float]:
    """Measure without end; what comes in the window stays in `run.ends_s`.

    Returns:
        Processor time of one measurement in the client, the scheduler and the workers, in milliseconds.
    """
    over = threading.Event()
    symbols = [f"s{index}" for index in range(_MANY)]
    thread = threading.Thread(target=run.measure, args=(symbols, hold_s, over.is_set))
    thread.start()
    try:
        # At first all devices begin at once, and everything is sent for the first time.
        until_s = time.monotonic() + _SETTLING_LIMIT_S
        while len(run.ends_s) < len(run.names) and time.monotonic() < until_s:
            time.sleep(hold_s)
        time.sleep(_SETTLING_S + 2 * hold_s)
        before_s = {name: cpu_s(process_id) for name, process_id in processes.items()}
        run.ends_s = {}
        time.sleep(window_s)
        seen, run.ends_s = run.ends_s, {}
        used_s = {name: cpu_s(process_id) - before_s[name] for name, process_id in processes.items()}
    finally:
        over.set()
        thread.join()
    run.ends_s = seen
    measurements = max(1, sum(map(len, seen.values())))
    cpu_ms = {"client": 0.0, "scheduler": 0.0, "workers": 0.0}
    for name, seconds in used_s.items():
        cpu_ms[name if name in cpu_ms else "workers"] += 1e3 * seconds / measurements
    return cpu_ms


def memory(measurements: int) -> dict[str, list[float]]:
    """Resident memory of the client, the scheduler and a worker after each batch, in MiB."""
    seen: dict[str, list[float]] = {"client": [], "scheduler": [], "worker": []}
    with tempfile.TemporaryDirectory(prefix="sdk-farm-") as text:
        folder = Path(text)
        names = device_names(_MEMORY_DEVICES)
        with (
            waiting_farm(folder, _MEMORY_DEVICES, 1) as farm,
            WaitingRun(folder / "run", names, farm.address) as run,
        ):
            processes = {"client": os.getpid(), "scheduler": farm.scheduler.pid, "worker": farm.workers["m0"].pid}
            for batch in range(measurements // _MEMORY_BATCH):
                run.measure([f"b{batch}_{index}" for index in range(_MEMORY_BATCH)], _MEMORY_HOLD_S)
                run.measured.clear()
                run.ends_s.clear()
                for who, process_id in processes.items():
                    seen[who].append(resident_bytes(process_id) / 2**20)
                told = ", ".join(f"{who} {mib[-1]:.1f}" for who, mib in seen.items())
                print(f"{(batch + 1) * _MEMORY_BATCH} measurements, MiB: {told}", file=sys.stderr, flush=True)
    return seen


def _print_memory(seen: dict[str, list[float]]) -> bool:
    flat = True
    for who, mib in seen.items():
        growth = mib[-1] - mib[len(mib) // 2]
        flat = flat and growth * 2**20 <= GROWTH_GOAL_BYTES
        slope = 2**20 * growth / (_MEMORY_BATCH * (len(mib) - 1 - len(mib) // 2))
        print(
            f"{who:10} {mib[0]:6.1f} MiB at first, {mib[-1]:6.1f} at the end; {slope:.1f} bytes a measurement", end=""
        )
        print(" in the second half")
    return flat


def main() -> int:
    """Print the figures; exit code 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, nargs="*", help="how many; 1, 8 and 64 without it")
    parser.add_argument("--hold", type=float, default=1.0, metavar="S", help="what one measurement takes")
    parser.add_argument("--window", type=float, default=20.0, metavar="S", help="how long is looked")
    parser.add_argument("--workers", type=int, default=4, help="lab hosts")
    parser.add_argument("--here", action="store_true", help="all in one process, without a scheduler's port")
    parser.add_argument("--full", action="store_true", help="1, 8, 64 and 256 devices")
    parser.add_argument("--memory", action="store_true", help="resident memory instead")
    parser.add_argument("--measurements", type=int, default=100_000, help="for --memory")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    stand_in()
    if arguments.memory:
        seen = memory(arguments.measurements)
        if arguments.json:
            print(json.dumps(seen, indent=2))
        return 0 if _print_memory(seen) else 1
    counts = arguments.devices or ([1, 8, 64, 256] if arguments.full else [1, 8, 64])
    rows = []
    for count in counts:
        rows.append(throughput(count, arguments.hold, arguments.window, arguments.workers, arguments.here))
        if not arguments.json:
            row = rows[-1]
            print(
                f"{count:4} devices: {row['a_second']:7.2f} a second, {row['of_linear']:.1%} of linear,"
                f" {row['overhead_ms']:.1f} ms of overhead a measurement; processor time"
                f" {', '.join(f'{who} {used:.2f} ms' for who, used in row['cpu_ms'].items() if used)}",
                flush=True,
            )
    if arguments.json:
        print(json.dumps(rows, indent=2))
    return 0 if all(row["of_linear"] >= GOAL for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
