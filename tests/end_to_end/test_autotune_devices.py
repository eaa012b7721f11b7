"""The loop on several devices behind real wires, which fail while it runs."""

from __future__ import annotations

import contextlib
import random
import shutil
import signal
import stat
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.events import DeviceChanged, Event, Notice, SampleMeasured
from halide_autotune.autotune_loop.play_off.verdict import VerdictReason
from halide_autotune.autotune_loop.run.result import Outcome, TuneResult
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import DeviceError
from halide_autotune.targets.process.content_cache import ContentCache
from tests.any_speed import any_speed_is_usual
from tests.end_to_end.conftest import SMALL, TINY_BATCH, Tune
from tests.end_to_end.run_files import check_header, check_run_folder, rows
from tests.fault_proxy import Direction
from tests.loopback_lab import LoopbackLab
from tests.remote_board import RemoteBoard, SshBoard, adb_board, ssh_board

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("sshd", path="/usr/sbin:/usr/bin"), reason="sshd is not installed"),
]


class Lab(LoopbackLab):
    """Boards, the inventory that names them, and what is left on them."""

    def __init__(self, folder: Path, settings: Settings, boards: list[RemoteBoard]) -> None:
        super().__init__(folder, boards, settings)
        self.boards = boards

    def leases(self) -> list[Path]:
        """What is left of the boards' leases."""
        return [
            slot
            for board in self.boards
            if board.place.lease_folder is not None
            for slot in Path(board.place.lease_folder).glob("slot-*")
            if slot.read_text()
        ]


@pytest.fixture
def lab(tmp_path: Path, settings: Settings) -> Iterator[Lab]:
    """Two boards with OpenSSH and an emulated phone."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(any_speed_is_usual())
        boards: list[RemoteBoard] = [stack.enter_context(ssh_board(tmp_path / name, name)) for name in ("one", "two")]
        boards.append(stack.enter_context(adb_board(tmp_path / "phone", "phone")))
        yield Lab(tmp_path, settings, boards)


def check_every_candidate_has_one_end(result: TuneResult) -> None:
    candidates = {symbol for (symbol,) in rows(result.run_folder, "SELECT symbol FROM candidates")}
    timed = Counter(
        symbol for (symbol,) in rows(result.run_folder, "SELECT symbol FROM measurements WHERE purpose = 'sample'")
    )
    failed = Counter(
        symbol
        for (symbol,) in rows(
            result.run_folder,
            # A default that an earlier process left is timed by the one that goes on.
            "SELECT symbol FROM failures WHERE symbol IS NOT NULL"
            " AND NOT (reason = 'stopped' AND symbol IN (SELECT symbol FROM measurements))",
        )
    )
    assert result.totals.not_done == len(candidates) - len(timed) - len(
        rows(result.run_folder, "SELECT DISTINCT symbol FROM failures WHERE symbol IS NOT NULL AND reason <> 'stopped'")
    )
    assert set(timed) | set(failed) == candidates
    assert all(count == 1 for count in (timed + failed).values()), "counted twice"


def incidents(result: TuneResult) -> list[tuple[object, ...]]:
    """What happened to the devices of a run."""
    return rows(result.run_folder, "SELECT * FROM incidents")


def test_several_devices_share_a_run(tune: Tune, lab: Lab, examples: Path, tmp_path: Path) -> None:
    events: list[Event] = []
    result = tune(
        str(examples / "separable_filter.py"),
        target="x86-64",
        device=["one", "two", "phone"],
        inventory=lab.inventory,
        parameters=SMALL,
        objective="worst",
        rounds=1,
        run_folder=tmp_path / "run",
        settings=lab.settings,
        listen=events.append,
    )
    assert result.outcome is Outcome.FINISHED and result.device == "one, two, phone"
    verdict = result.best.verdict
    assert verdict is not None and (verdict.reason is VerdictReason.FASTER) == (result.best.sample != "default")
    assert set(verdict.by_device) == {"one", "two", "phone"} and verdict.devices_lost == (), incidents(result)
    check_run_folder(result, "separable_filter", "wall")
    check_every_candidate_has_one_end(result)
    assert {use.name for use in result.devices} == {"one", "two", "phone"}
    assert set(result.best.by_device) == {"one", "two", "phone"} and result.best.confirmed
    factors = dict(rows(result.run_folder, "SELECT device, factor FROM calibrations"))
    assert set(factors) == {"one", "two", "phone"} and 1.0 in factors.values()
    # Each batch is framed by a look at the boards.
    assert {moment for (moment,) in rows(result.run_folder, "SELECT moment FROM device_states")} == {"before", "after"}
    assert lab.leases() == [], "every lease is given back"
    assert not [event for event in events if isinstance(event, Notice) and event.warning]


def test_faults_at_random_moments_lose_nothing(tune: Tune, lab: Lab, examples: Path, tmp_path: Path) -> None:
    chance = random.Random(5)
    over = threading.Event()

    def break_things() -> None:
        # Rarely enough that a board is back, and times something, before the next fault.
        while not over.wait(chance.uniform(1.0, 3.0)):
            proxy = chance.choice(lab.boards).proxy
            fault = chance.choice(["drop", "garbage", "after", "silence"])
            if fault == "drop":
                proxy.drop_all()
            elif fault == "garbage":
                proxy.flip(Direction.TO_CLIENT, byte_count=200)
            elif fault == "after":
                proxy.drop_after(chance.choice(list(Direction)), chance.randrange(1, 300_000))
            else:
                proxy.silence()
                over.wait(chance.uniform(0.1, 2.0))
                proxy.silence(False)

    breaker = threading.Thread(target=break_things)
    events: list[Event] = []

    def listen(event: Event) -> None:
        events.append(event)
        if isinstance(event, Notice) and event.text.startswith("The reference") and not breaker.is_alive():
            breaker.start()
        # However fast this machine is, some fault meets a schedule, and not only a file on its way.
        if isinstance(event, SampleMeasured) and not any(isinstance(seen, DeviceChanged) for seen in events):
            for board in lab.boards:
                board.proxy.drop_all()

    try:
        result = tune(
            str(examples / "separable_filter.py"),
            target="x86-64",
            device=["one", "two", "phone"],
            inventory=lab.inventory,
            parameters=SMALL,
            run_folder=tmp_path / "run",
            settings=lab.settings,
            rounds=2,
            listen=listen,
        )
    finally:
        over.set()
        breaker.join()
    assert result.outcome is Outcome.FINISHED
    check_every_candidate_has_one_end(result)
    assert (
        result.totals.samples_timed + sum(result.totals.failures.values()) + result.totals.not_done
        >= 2 * TINY_BATCH["batch_size"] - 2
    )
    assert result.totals.incidents, "no fault met a schedule"
    assert [event for event in events if isinstance(event, DeviceChanged) and event.state == "in service"]
    assert result.best.header is not None
    check_header(result.best.header, "separable_filter")


def test_a_run_goes_on_without_a_board_that_dies(tune: Tune, lab: Lab, examples: Path, tmp_path: Path) -> None:
    def listen(event: Event) -> None:
        if isinstance(event, Notice) and event.text.startswith("The reference"):
            for board in lab.boards[1:]:
                board.proxy.refuse()
                board.proxy.drop_all()

    result = tune(
        str(examples / "separable_filter.py"),
        target="x86-64",
        device=["one", "two"],
        inventory=lab.inventory,
        parameters=SMALL,
        rounds=1,
        patience_s=10.0,
        run_folder=tmp_path / "run",
        settings=lab.settings,
        listen=listen,
    )
    assert result.outcome is Outcome.FINISHED
    check_every_candidate_has_one_end(result)
    assert set(result.best.by_device) == {"one"}


def test_a_run_that_lost_its_only_board_is_resumed_on_another(
    tune: Tune, lab: Lab, examples: Path, tmp_path: Path
) -> None:
    one = lab.boards[0]

    def listen(event: Event) -> None:
        if isinstance(event, Notice) and event.text.startswith("The reference"):
            one.proxy.refuse()
            one.proxy.drop_all()

    request = {
        "target": "x86-64",
        "inventory": lab.inventory,
        "parameters": SMALL,
        "run_folder": tmp_path / "run",
        "settings": lab.settings,
    }
    generator = str(examples / "separable_filter.py")
    lost = tune(generator, device=["one"], rounds=1, patience_s=2.0, listen=listen, **request)
    assert lost.outcome is Outcome.DEVICES_LOST and lost.totals.not_done > 0
    found = tune(generator, device=["two"], resume=True, rounds=2, **request)
    assert found.outcome is Outcome.FINISHED and found.totals.samples_timed > 0
    check_every_candidate_has_one_end(found)


_KILLED = """
import os, signal, sys
from pathlib import Path
from halide_autotune.sdk.settings import read_settings
from tests.any_speed import any_speed_is_usual
from tests.flat_tuning import tune_flat
generator, inventory, folder = sys.argv[1:4]
def listen(event):
    if event.kind == "sample_measured":
        os.kill(os.getpid(), signal.SIGKILL)
with any_speed_is_usual():
    tune_flat(generator, parameters=sys.argv[4:], target="x86-64", device=["one"], inventory=Path(inventory),
        run_folder=Path(folder), parallelism=1, rounds=1, batch_size=5, pool_factor=1.0, seed=3, epochs=5,
        listen=listen)
"""


def test_a_killed_run_takes_its_device_back_at_once(tune: Tune, lab: Lab, examples: Path, tmp_path: Path) -> None:
    """Its lease lasts for minutes; a run of another folder still has to wait for it."""
    generator, folder = str(examples / "separable_filter.py"), tmp_path / "run"
    command = [sys.executable, "-c", _KILLED, generator, str(lab.inventory), str(folder), *SMALL]
    environment = {**lab.settings.environment, "SDK_CONFIG_DIR": str(lab.settings.config_folder)}
    killed = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert lab.leases() and stat.S_IMODE((folder / "lease-token").stat().st_mode) == 0o600
    request = {"inventory": lab.inventory, "parameters": SMALL, "settings": lab.settings, "device": ["one"]}
    with pytest.raises(DeviceError, match="leased by"):
        tune(generator, target="x86-64", run_folder=tmp_path / "other", patience_s=0.1, **request)
    resumed = tune(generator, run_folder=folder, resume=True, rounds=1, **request)
    assert resumed.outcome is Outcome.FINISHED and resumed.totals.not_done == 0
    assert not incidents(resumed) and not lab.leases()


def test_a_device_that_another_user_has_is_waited_for(tune: Tune, lab: Lab, examples: Path, tmp_path: Path) -> None:
    told: list[str] = []
    ann = lab.boards[0].transport(ContentCache(lab.settings.cache_folder), owner="ann@lab")

    def listen(event: Event) -> None:
        if isinstance(event, DeviceChanged):
            told.append(f"{event.device} is {event.state}: {event.message}")
        elif isinstance(event, Notice) and "waits for a device" in event.text:
            told.append(event.text)
            ann.close()

    with contextlib.closing(ann):
        ann.open()
        result = tune(
            str(examples / "separable_filter.py"),
            parameters=SMALL,
            target="x86-64",
            device=["one"],
            inventory=lab.inventory,
            run_folder=tmp_path / "run",
            settings=lab.settings,
            rounds=1,
            listen=listen,
        )
    assert result.outcome is Outcome.FINISHED and result.totals.samples_timed > 0
    assert told[0].startswith("one is out of service: The slot is leased by ann@lab.") and told[1].endswith("at most.")
    assert told[2] == "one is in service: " and not lab.leases()


def test_schedules_are_compared_on_each_device(lab: Lab, examples: Path) -> None:
    from halide_autotune.sdk import GeneratorSpec, RunOptions, bench

    results = bench(
        GeneratorSpec(str(examples / "separable_filter.py"), SMALL),
        ["adams2019", "mullapudi2016"],
        device=["one", "phone"],
        options=RunOptions.of(inventory=lab.inventory, parallelism=1),
        turns=1,
        settings=lab.settings,
    )
    assert [(result.device, result.label) for result in results] == [
        ("one", "adams2019"),
        ("one", "mullapudi2016"),
        ("phone", "adams2019"),
        ("phone", "mullapudi2016"),
    ]
    assert all(result.failure is None and result.median_ms and result.reference for result in results)
    assert lab.leases() == []


def test_a_board_with_another_host_key_is_not_used(tune: Tune, lab: Lab, examples: Path, tmp_path: Path) -> None:
    board = lab.boards[0]
    assert isinstance(board, SshBoard)
    board.server.kill()
    board.server.change_host_key()
    board.server.start()
    with pytest.raises(DeviceError, match="host key") as caught:
        tune(
            str(examples / "separable_filter.py"),
            target="x86-64",
            device="one",
            inventory=lab.inventory,
            run_folder=tmp_path / "run",
            settings=lab.settings,
        )
    assert "ssh-keygen -R" in caught.value.next_step
    assert not (tmp_path / "run").exists(), "nothing is left of a run that did not begin"


def test_boards_share_the_parameter_sets(lab: Lab, tune: Tune, examples: Path, tmp_path: Path) -> None:
    """Other parameters are the schedules by which the boards' times are brought to one scale."""
    result = tune(
        str(examples / "parameters" / "tiled_blur.cpp"),
        target="x86-64",
        parameters=["width=256", "height=128"],
        tune={"tile_x": "16..64:x2", "vector": "8,16"},
        device=["one", "two"],
        run_folder=tmp_path / "run",
        settings=lab.settings,
        inventory=lab.inventory,
        rounds=9,
    )
    assert result.outcome is Outcome.EXHAUSTED and result.totals.samples_timed == 6
    check_every_candidate_has_one_end(result)
    assert {use.name: use.fits for use in result.devices} == {"one": True, "two": True}
    assert rows(tmp_path / "run", "SELECT max(schedules) >= 2 FROM calibrations") == [(1,)]
    assert result.best.parameters_file is not None and result.best.tuned_parameters.keys() == {"tile_x", "vector"}
    assert lab.leases() == []
