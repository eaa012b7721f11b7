"""A network is checked and timed behind a wire: its benchmark goes to the board, and what it computes comes back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

import sdk
from halide_autotune.devices.device import Clock
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.sdk.settings import Settings
from tests.loopback_lab import LoopbackLab
from tests.remote_board import RemoteBoard, adb_board, ssh_board
from tests.sshd_server import SSHD

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.skipif(SSHD is None, reason="sshd is not installed"),
]


@pytest.fixture(scope="module")
def model(tensorflow_ready: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    import keras

    source = keras.Input((6, 6, 3))
    value = keras.layers.Conv2D(4, 3, activation="relu", name="first")(source)
    value = keras.layers.Dense(5, name="head")(keras.layers.Flatten()(value))
    path = tmp_path_factory.mktemp("model") / "few.keras"
    keras.Model(source, value).save(path)
    return path


@pytest.mark.parametrize("opened", [ssh_board, adb_board])
def test_a_network_is_checked_and_timed_on_a_board(
    opened: Callable[[Path], AbstractContextManager[RemoteBoard]], model: Path, settings: Settings, tmp_path: Path
) -> None:
    with opened(tmp_path / "board") as board:
        lab = LoopbackLab(tmp_path, [board], settings)
        options = sdk.RunOptions.of(device=[board.name], inventory=lab.inventory, parallelism=1)

        def lose_connection(text: str) -> None:
            if text.startswith("building"):
                board.proxy.drop_all()

        def switch_off(text: str) -> None:
            if text.startswith("timing: turn 1"):
                board.proxy.refuse()
                board.proxy.drop_all()

        found = sdk.bench_network(str(model), options=options, turns=2, progress=lose_connection, settings=lab.settings)
        assert found.wrong == () and found.device.name == board.name and found.device.clock is Clock.WALL
        assert [{*layer.checks} for layer in found.layers] == [{"default"}, {"default"}]
        assert [*found.times_ms] == ["default"] and found.not_timed == {}, "TensorFlow and LiteRT are not on the board"
        assert found.times_ms["default"] > 0 and all(layer.times_ms["default"] > 0 for layer in found.layers)
        leases = Path(board.place.lease_folder or "")
        assert [slot.read_text() for slot in leases.glob("slot-*")] in ([], [""]), "the lease is given back"
        with pytest.raises(DeviceTrouble, match="closed the connection") as trouble:
            sdk.bench_network(str(model), options=options, progress=switch_off, settings=lab.settings)
        assert trouble.value.kind is TroubleKind.LOST
        with pytest.raises(DeviceTrouble) as trouble:
            sdk.bench_network("missing.keras", options=options, settings=lab.settings)
        assert trouble.value.kind is TroubleKind.UNREACHABLE, "told before the model is read"
