"""What a machine says of its NVIDIA cards, told by the real program; the driver is a stand-in, or is not there."""

from __future__ import annotations

import contextlib
import ctypes
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.health.card_state import (
    CardState,
    build_card_probe,
    choose_card,
    find_card,
    read_card_report,
)
from halide_autotune.devices.local.host_transport import HostTransport
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import DeviceError
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.toolchain.zig import ZigToolchain
from tests import device_replies
from tests.stand_in_cuda import StandInCuda, build_stand_in_cuda

MEMORY_BYTES = 4 * 2**30
CARD = {**device_replies.CARD, "processes": None, "busy_percent": None}


@pytest.fixture(scope="module")
def probe(cache: ContentCache) -> Path:
    return build_card_probe(ZigToolchain("x86_64-linux-gnu.2.28", cache.root / "zig"), cache)


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> StandInCuda:
    return build_stand_in_cuda(tmp_path_factory.mktemp("stand_in"))


@contextlib.contextmanager
def machine(folder: Path, environment: dict[str, str]) -> Iterator[HostTransport]:
    transport = HostTransport(folder, environment, MEMORY_BYTES)
    with contextlib.closing(transport):
        yield transport


def report(*events: dict[str, object]) -> str:
    return "".join(json.dumps(event) + "\n" for event in (*events, {"event": "done"}))


def test_a_card_says_what_it_is(probe: Path, stand_in: StandInCuda, settings: Settings, tmp_path: Path) -> None:
    with machine(tmp_path, stand_in.environment(settings.environment, cards=2, processes=3, busy_percent=40)) as here:
        state = find_card(here, probe, "here")
    card = state.card
    # Of two, the one with more multiprocessors.
    assert (card.name, card.architecture, card.multiprocessors) == ("Stand-in 1 ?no card?", "sm_86", 21)
    assert (card.shared_memory_per_multiprocessor_bytes, card.threads_per_multiprocessor) == (102400, 1536)
    assert (card.shared_memory_per_block_bytes, card.registers_per_block, card.threads_per_block) == (
        49152,
        65536,
        1024,
    )
    assert (state.driver, state.memory_bytes, state.processes, state.busy_percent) == ("12.4", 8 * 2**30, 3, 40)
    assert state.describe().endswith("(compute capability 8.6, 21 multiprocessors), driver for CUDA 12.4")
    assert state.use_by_others == "in use by 3 other processes and busy for 40 % of the time"


def test_a_driver_without_a_card(probe: Path, stand_in: StandInCuda, settings: Settings, tmp_path: Path) -> None:
    with (
        machine(tmp_path, stand_in.environment(settings.environment, cards=0)) as here,
        pytest.raises(DeviceError, match="here cannot run kernels for NVIDIA cards: its CUDA driver has no card"),
    ):
        find_card(here, probe, "here")


def test_a_driver_without_the_name_that_halide_looks_for(
    probe: Path, stand_in: StandInCuda, settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "libcuda.so.1").symlink_to(stand_in.folder / "libcuda.so.1")
    environment = {**settings.environment, "LD_LIBRARY_PATH": str(tmp_path)}
    with (
        machine(tmp_path, environment) as here,
        pytest.raises(DeviceError, match=r"as libcuda\.so\.1 only, .* make a link"),
    ):
        find_card(here, probe, "here")


def test_no_driver(probe: Path, settings: Settings, tmp_path: Path) -> None:
    with contextlib.suppress(OSError):
        ctypes.CDLL("libcuda.so.1")
        pytest.skip("there is a CUDA driver")
    with (
        machine(tmp_path, dict(settings.environment)) as here,
        pytest.raises(DeviceError, match="no CUDA driver") as no,
    ):
        find_card(here, probe, "here")
    assert "`sdk build` works without one" in str(no.value)


def test_use_by_others_is_told_only_where_it_is_known() -> None:
    def use(processes: int | None, busy_percent: int | None) -> str:
        text = report(
            {"event": "driver", "version": 13000}, CARD | {"processes": processes, "busy_percent": busy_percent}
        )
        return read_card_report(text, "d")[0].use_by_others

    assert use(None, None) == use(0, 5) == ""
    assert use(1, None) == "in use by 1 other process"
    assert use(None, 80) == use(0, 80) == "busy for 80 % of the time"


@pytest.mark.parametrize("wrong", [{"multiprocessors": 0}, {"major": "8"}, {"name": 3}, {"registers_per_block": 2**40}])
def test_a_report_that_makes_no_sense_is_the_devices_fault(wrong: dict[str, object]) -> None:
    with pytest.raises(DeviceTrouble):
        read_card_report(report({"event": "driver", "version": 12040}, CARD | wrong), "d")


def test_a_report_without_a_card_or_an_end() -> None:
    with pytest.raises(DeviceTrouble, match="has no end") as caught:
        read_card_report(json.dumps(CARD), "d")
    assert caught.value.kind is TroubleKind.PROTOCOL_ERROR
    with pytest.raises(DeviceError, match="no NVIDIA card"):
        choose_card(read_card_report(report({"event": "driver", "version": 12040}), "d"), "d")


@given(st.dictionaries(st.sampled_from([*CARD, "version"]), st.none() | st.booleans() | st.integers() | st.text()))
def test_no_report_is_too_odd(fields: dict[str, object]) -> None:
    try:
        cards = read_card_report("noise\n{\n[]\n" + report(CARD | fields), "d")
    except DeviceError:
        return
    assert all(isinstance(state, CardState) and state.card.multiprocessors > 0 for state in cards)
