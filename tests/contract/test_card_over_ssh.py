"""The card of a machine behind a real OpenSSH server, whose driver is a stand-in."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from halide_autotune.devices.device import Clock, Device
from halide_autotune.sdk.inventory.lookup import open_inventory
from halide_autotune.sdk.select.card_choice import describe_card, fit_card
from halide_autotune.sdk.select.device_choice import DeviceChoice
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import DeviceError, UsageError
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.profile.profile import TargetProfile
from tests.contract.conftest import SEARCH_PATH
from tests.loopback_lab import LoopbackLab
from tests.remote_board import SshBoard, ssh_board
from tests.stand_in_cuda import StandInCuda, build_stand_in_cuda

pytestmark = pytest.mark.skipif(not shutil.which("sshd", path=SEARCH_PATH), reason="sshd is not installed")


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshBoard]:
    with ssh_board(tmp_path_factory.mktemp("board")) as opened:
        yield opened


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> StandInCuda:
    return build_stand_in_cuda(tmp_path_factory.mktemp("stand_in"))


@pytest.fixture(scope="module")
def profile() -> TargetProfile:
    return load_profile("cuda-sm86")


def slot(board: SshBoard, number: int, environment: dict[str, str]) -> Device:
    place = replace(board.place, slot=number, environment=tuple(environment.items()))
    return Device(f"box.{number + 1}", "ssh", "cuda-sm86", Clock.WALL, 1, uses_host_cores=False, remote=place)


def test_a_run_searches_for_the_card_it_finds(
    board: SshBoard, stand_in: StandInCuda, profile: TargetProfile, settings: Settings
) -> None:
    devices = tuple(slot(board, number, stand_in.environment({}, processes=number)) for number in range(2))
    choice = fit_card(DeviceChoice(devices, profile, 82, note="Chosen."), None, board.connections, settings)
    card = choice.profile.machine.gpu
    assert card is not None and (card.name, card.multiprocessors) == ("Stand-in 0 ?no card?", 20)
    assert choice.parallelism == choice.profile.machine.parallelism == 20
    assert choice.note.startswith("Chosen. The card is Stand-in 0 ?no card? (compute capability 8.6, 20")
    assert "Stand-in 0 ?no card? on box.2 is in use by 1 other process" in choice.note
    assert "box.1 is in use" not in choice.note
    # What the user asks for wins, and the leases were given back.
    assert fit_card(DeviceChoice(devices, profile, 82), 7, board.connections, settings).parallelism == 7
    usual = load_profile("x86-64")
    unchanged = DeviceChoice(devices, usual, 4)
    assert fit_card(unchanged, None, board.connections, settings) is unchanged


def test_the_card_of_a_device_of_the_inventory(
    board: SshBoard, stand_in: StandInCuda, settings: Settings, tmp_path: Path
) -> None:
    lab = LoopbackLab(tmp_path, [board], settings)
    variables = json.dumps(stand_in.environment({})).replace(":", " =")
    entry = board.inventory_entry("cuda-sm80").replace(
        "performance_mode", f"environment = {variables}\nperformance_mode"
    )
    lab.inventory.write_text(entry)
    found = open_inventory(lab.inventory, lab.settings).find("board")
    assert describe_card(found, lab.settings).startswith("Stand-in 0 ?no card? (compute capability 8.6, 20 multi")
    assert describe_card(replace(found, profile_name="x86-64"), lab.settings) == ""
    environment = (*found.place.environment, ("STAND_IN_CUDA_CARDS", "0"))
    newer = replace(found, place=replace(found.place, environment=environment))
    assert "its CUDA driver has no card" in describe_card(newer, lab.settings)


def test_cards_that_do_not_fit(
    board: SshBoard, stand_in: StandInCuda, profile: TargetProfile, settings: Settings
) -> None:
    usual, other = (slot(board, n, stand_in.environment({}, cards=n + 1)) for n in range(2))
    with pytest.raises(UsageError, match=r"The devices have different cards \(Stand-in 0 .*, Stand-in 1 .*\)"):
        fit_card(DeviceChoice((usual, other), profile, 82), None, board.connections, settings)
    old = slot(board, 0, stand_in.environment({}, major=7))
    with pytest.raises(DeviceError, match=r"on box\.1 has compute capability 7\.6, and profile cuda-sm86 .* 8\.6"):
        fit_card(DeviceChoice((old,), profile, 82), None, board.connections, settings)
    without = slot(board, 0, stand_in.environment({}, cards=0))
    with pytest.raises(DeviceError, match=r"box\.1 cannot run kernels for NVIDIA cards"):
        fit_card(DeviceChoice((usual, replace(without, name="box.1")), profile, 82), None, board.connections, settings)
