"""`sdk devices` with an emulated Android device, ADB's real protocol and the real agent."""

from __future__ import annotations

import json
import platform
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from halide_autotune.devices.adb.wire import AdbLimits
from halide_autotune.devices.inventory.file import load_inventory
from halide_autotune.sdk.inventory import device_listing
from halide_autotune.sdk.main import main
from halide_autotune.sdk.settings import Settings
from tests.adb_device.adb_device import AdbDevice
from tests.adb_device.device_options import DeviceOptions

# The first test builds the agent, which takes a while on a busy machine.
pytestmark = pytest.mark.slow


@pytest.fixture
def phone(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[AdbDevice]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SDK_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("SDK_CACHE_DIR", str(settings.cache_folder))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(device_listing, "ANSWER_LIMIT_S", 240.0)
    with AdbDevice(tmp_path / "phone", DeviceOptions(asks_for_keys=True)) as device:
        yield device


def test_a_phone_is_allowed_added_checked_and_leased(
    phone: AdbDevice, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config" / "devices.toml"
    person = threading.Thread(target=phone.tap_allow, args=(240.0,))
    person.start()
    assert main(["devices", "add", "phone", "--adb", f"127.0.0.1:{phone.port}"]) == 0
    person.join()
    assert "Allow" in capsys.readouterr().err
    assert dict(load_inventory(file).find("phone").probed)["architecture"] == platform.machine()
    file.write_text(file.read_text().replace("\n\n", f'\nlease_folder = "{tmp_path}/leases"\n\n', 1))

    main(["devices", "check", "phone", "--json"])
    checks = json.loads(capsys.readouterr().out)["devices"][0]["checks"]
    assert {check["name"] for check in checks if not check["passed"]} <= {"steady speed", "load", "temperature"}
    main(["doctor", "--target", "arm64", "--device", "phone", "--json"])
    found = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    for name in ("FastRPC (phone)", "DSP signature (phone)"):
        assert not found[name]["passed"] and not found[name]["needed"], "this phone has no DSP"
    assert main(["devices", "lease", "phone"]) == 0
    assert "Leased phone until" in capsys.readouterr().out
    assert main(["devices"]) == 0
    assert "leased by" in capsys.readouterr().out
    assert main(["devices", "release", "phone"]) == 0
    assert capsys.readouterr().out == "Released phone.\n"


def test_a_phone_that_nobody_has_allowed_is_listed_with_the_reason(
    phone: AdbDevice, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("halide_autotune.devices.adb.link.AdbLimits", partial(AdbLimits, allow_s=1.0))
    arguments = f"devices add phone --adb 127.0.0.1:{phone.port} --no-probe --target x86-64"
    assert main(arguments.split()) == 0
    capsys.readouterr()
    assert main(["devices", "--json"]) == 0
    state = json.loads(capsys.readouterr().out)["devices"][0]
    assert state["state"] == "unreachable"
    assert "tap Allow" in state["trouble"]
