"""Runs in which everything fails that can: nothing lost, nothing counted twice, no wrong winner, nothing left behind.

    python -m benchmarks.fault_storm --faults 1000

Two boards with real OpenSSH servers and an emulated Android device, each behind a proxy, and each with faults of its
own, which overlap. The first half of them hits a run that reaches the boards itself, the second half one over a farm of
two workers that serve them; `--scene` chooses one of the two. Most faults begin while a kernel is being timed. At the
end each run goes on in peace for a round and decides; its winner is then timed beside the default, undisturbed, on this
machine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import cast

import sdk
from benchmarks.killed_tuner import Event, Tuner, account_of, heed_interrupts, left_behind
from benchmarks.storm import Storm, mixed_kinds, recovery_times_s
from benchmarks.storm_kinds import KINDS, Scene, programs, sdk_folder
from halide_autotune.sdk.settings import Settings, read_settings
from tests.loopback_farm import loopback_farm
from tests.loopback_lab import LoopbackLab
from tests.remote_board import RemoteBoard, adb_board, ssh_board

GENERATOR = Path("examples/separable_filter.py").absolute()
PARAMETERS = ("width=320", "height=180")
ASKED = ("--parallelism", "1", "-s", "24", "--pool-factor", "1.2", "--epochs", "20", "--target", "x86-64")
# The storm itself disturbs the machine all the time, which is no reason to wait.
PATIENCE = ("--device-patience", "45s", "--quiet-patience", "1s")
# A winner that is no slower than this share of the default, undisturbed, is no wrong one.
SLACK = 1.05
_DISK_MEGABYTES = 32


def run_scene(scene: Scene, faults: int, settings: Settings, limit_s: float) -> dict[str, object]:
    """One run in the storm, and its figures; the boards and the farm are in order afterwards."""
    enough = threading.Event()
    kinds = mixed_kinds(scene, faults)
    storm = Storm(scene, list(kinds), enough, limit_s)
    started_s = time.monotonic()
    try:
        scene.tuner.run_until(enough, storm.listen)
    finally:
        storm.end()
    code, result = scene.tuner.run(storm.listen, ["-n", str(scene.tuner.next_round() + 1)])
    account = account_of(scene.tuner.run_folder, result)
    speed_up = winners_speed_up(result, settings)
    return {
        "faults": len(storm.faults),
        "by kind": dict(Counter(storm.faults)),
        "while a kernel was timed": storm.in_a_kernel,
        "while another one lasted": storm.overlapped,
        "found nothing to spoil, and were tried again": storm.missed,
        "account": asdict(account),
        "failures": result.get("failures"),
        "handed out again": result.get("incidents"),
        "starts of the tuner": scene.tuner.starts,
        "minutes": round((time.monotonic() - started_s) / 60, 1),
        "winner against the default, undisturbed": round(speed_up, 2),
        "recovered_s": recovery_times_s(storm.recoveries),
        "passed": code == 0 and account.is_whole and speed_up >= 1 / SLACK and Counter(storm.faults) == Counter(kinds),
    }


def winners_speed_up(result: Event, settings: Settings) -> float:
    """How many times as fast as the default the run's winner is, undisturbed."""
    tuned = cast("list[dict[str, str | None]]", result["tuned"])[0]
    timed = sdk.bench(
        sdk.GeneratorSpec(str(GENERATOR), PARAMETERS),
        [str(tuned["header"]), "adams2019"] if tuned["header"] else ["adams2019"],
        target="x86-64",
        device="local",
        options=sdk.RunOptions.of(parallelism=1),
        settings=settings,
    )
    times_ms = [one.median_ms for one in timed]
    assert times_ms[0] is not None and times_ms[-1] is not None, "both run"
    return times_ms[-1] / times_ms[0]


@contextlib.contextmanager
def boards_in(folder: Path) -> Iterator[tuple[list[RemoteBoard], dict[str, Path]]]:
    """The boards, and those whose work folder is a small file system, where this user may mount one."""
    disks: dict[str, Path] = {}
    with contextlib.ExitStack() as stack:
        for name in ("one", "two"):
            disk = folder / name / "work"
            disk.mkdir(parents=True)
            mount = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_MEGABYTES}m", "tmpfs", str(disk)]
            if shutil.which("mount") and subprocess.run(mount, capture_output=True, check=False).returncode == 0:
                stack.callback(subprocess.run, ["umount", "-l", str(disk)], check=True)
                disks[name] = disk
        boards: list[RemoteBoard] = [stack.enter_context(ssh_board(folder / name, name)) for name in ("one", "two")]
        boards.append(stack.enter_context(adb_board(folder / "phone", "phone")))
        yield boards, disks


def direct_storm(
    folder: Path, faults: int, chance: random.Random, settings: Settings, limit_s: float = math.inf
) -> dict[str, object]:
    """The run reaches the boards itself."""
    with boards_in(folder) as (boards, disks):
        lab = LoopbackLab(folder, boards, settings)
        devices = [word for board in boards for word in ("--device", board.name)]
        tuner = _tuner(folder, lab.settings, [*devices, "--inventory", str(lab.inventory)])
        figures = run_scene(Scene(boards, tuner, chance, disks=disks), faults, lab.settings, limit_s)
        return _with_leftovers(figures, boards, folder)


def farm_storm(
    folder: Path, faults: int, chance: random.Random, settings: Settings, limit_s: float = math.inf
) -> dict[str, object]:
    """The run reaches the boards over a farm of two workers."""
    with boards_in(folder) as (boards, disks), loopback_farm(folder / "farm", settings) as farm:
        shares = {"first": [boards[0], boards[2]], "second": [boards[1]]}
        labs = {}
        for name, share in shares.items():
            (folder / name).mkdir()
            labs[name] = LoopbackLab(folder / name, share, settings)

        def start_worker(name: str) -> None:
            farm.start_worker(name, labs[name].settings, labs[name].inventory, build_slots=1)

        for name in shares:
            start_worker(name)
        farm_words = ["--scheduler", farm.url, "--farm-certificates", str(farm.user_folder)]
        serves = {board.name: name for name, share in shares.items() for board in share}
        tuner = _tuner(folder, labs["first"].settings, farm_words)
        scene = Scene(boards, tuner, chance, farm, serves, start_worker, disks=disks)
        figures = run_scene(scene, faults, settings, limit_s)
        for worker in farm.workers.values():
            worker.end()
        farm.scheduler.end()
        return _with_leftovers(figures, boards, folder)


def _tuner(folder: Path, settings: Settings, devices: Sequence[str]) -> Tuner:
    parameters = [word for parameter in PARAMETERS for word in ("-p", parameter)]
    asked = [str(GENERATOR), *parameters, *ASKED, *PATIENCE, "-n", "10000", *devices]
    environment = {**settings.environment, "SDK_CACHE_DIR": str(settings.cache_folder)}
    return Tuner(folder / "tuner", asked, {**environment, "SDK_CONFIG_DIR": str(settings.config_folder)})


def _with_leftovers(figures: dict[str, object], boards: Sequence[RemoteBoard], folder: Path) -> dict[str, object]:
    left = left_behind(folder / "tuner")
    for board in boards:
        left += [f"process {process} on {board.name}" for process in programs(board, with_agent=True)]
        assert board.place.lease_folder is not None
        leases = Path(board.place.lease_folder).glob("slot-*")
        left += [f"lease of {board.name}: {lease.read_text()}" for lease in leases if lease.read_text()]
        left += [
            f"{path} on {board.name}: {_contents(path)}"
            for path in sdk_folder(board).iterdir()
            if not path.name.startswith("agent-")
        ]
    return {**figures, "left behind": left, "passed": figures["passed"] and not left}


def _contents(left: Path) -> str:
    """What lies in a folder and since when, which tells whose it was and when that stopped working in it."""
    paths = [left, *(sorted(left.rglob("*")) if left.is_dir() else ())]
    return ", ".join(
        f"{path.name} {time.strftime('%H:%M:%S', time.localtime(path.lstat().st_mtime))}" for path in paths
    )


def recovery_table(scenes: Sequence[dict[str, object]]) -> str:
    """Kind by kind: after how many seconds its board gave a time again, with no other fault before that, and at all."""
    lines = ["| kind | no other before | median | longest | another before | median | longest |", "|---" * 7 + "|"]
    for kind in KINDS:
        found: dict[str, list[float]] = {
            which: [time_s for scene in scenes for time_s in _recovered_s(scene)[kind][which]]
            for which in ("alone", "with others")
        }
        if any(found.values()):
            lines.append(f"| {kind} | {' | '.join(_in_short(times_s) for times_s in found.values())} |")
    return "\n".join(lines)


def _in_short(times_s: Sequence[float]) -> str:
    if not times_s:
        return "0 | |"
    return f"{len(times_s)} | {statistics.median(times_s):.1f} | {max(times_s):.1f}"


def _recovered_s(figures: Mapping[str, object]) -> Mapping[str, Mapping[str, Sequence[float]]]:
    return cast("Mapping[str, Mapping[str, Sequence[float]]]", figures["recovered_s"])


SCENES = {"direct": direct_storm, "farm": farm_storm}


def main() -> int:
    """Run the scenes and print what became of every schedule; exit code 1 when something is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faults", type=int, default=1000, help="of all scenes together")
    parser.add_argument("--scene", choices=SCENES, action="append", help="default: both")
    parser.add_argument("--minutes", type=float, default=math.inf, help="end each scene's faults after this time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the scenes' files and logs there")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    heed_interrupts()
    scenes, names = {}, arguments.scene or list(SCENES)
    for name in names:
        faults = arguments.faults // len(names)
        with contextlib.ExitStack() as stack:
            kept = arguments.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sdk-storm-")))
            (kept / name).mkdir(parents=True)
            chance, limit_s = random.Random(arguments.seed), arguments.minutes * 60
            scenes[name] = SCENES[name](kept / name, faults, chance, read_settings(), limit_s)
    if arguments.json:
        print(json.dumps(scenes, indent=2))
    else:
        for name, figures in scenes.items():
            print(name, *(f"  {key}: {value}" for key, value in figures.items() if key != "recovered_s"), sep="\n")
        print(recovery_table(list(scenes.values())))
    return 0 if all(figures["passed"] for figures in scenes.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
