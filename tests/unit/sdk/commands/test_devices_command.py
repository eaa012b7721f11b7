"""`sdk devices` without a device: the file, the options, the messages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.devices.device_link import TRANSPORTS
from halide_autotune.devices.health.health import record_unhealthy
from halide_autotune.devices.inventory.file import load_inventory
from halide_autotune.devices.remote_place import SshAddress, UrlAddress
from halide_autotune.sdk.main import main
from tests.installed_package import install_package

PI = '[devices.pi]\nprofile = "arm64"\ntransport = "ssh"\naddress = "pi@board:22"\nlabels = ["lab"]\n'
PHONE = '[devices.phone]\nprofile = "arm64"\ntransport = "adb"\nserial = "R58"\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CACHE", "CONFIG", "PROFILE"):
        monkeypatch.setenv(f"SDK_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.fixture
def inventory(folder: Path) -> Path:
    file = folder / "devices.toml"
    file.write_text(PI + PHONE)
    return file


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 2) -> str:
    assert main(list(arguments)) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("sdk: ")
    return captured.err


def test_without_an_inventory(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["devices"]) == 0
    assert "No devices yet" in capsys.readouterr().out
    assert answer(capsys, "devices") == {"inventory": str(tmp_path / "config" / "devices.toml"), "devices": []}


def test_the_list(capsys: pytest.CaptureFixture[str], inventory: Path, tmp_path: Path) -> None:
    record_unhealthy(tmp_path / "config" / "health", SshAddress("board", 22, "pi"), "It fell silent.", 0.0)
    assert main(["devices", "--offline"]) == 0
    text = capsys.readouterr().out
    for words in ("pi ", "arm64", "ssh pi@board:22", "lab", "adb R58", "not asked", str(inventory)):
        assert words in text
    assert "unhealthy: It fell silent. (since 19" in text
    pi, phone = answer(capsys, "devices", "--offline")["devices"]
    assert (pi["state"], pi["unhealthy"]["since"]) == ("unhealthy", "1970-01-01T00:00:00+00:00")
    assert phone == {
        "name": "phone",
        "profile": "arm64",
        "transport": "adb",
        "serial": "R58",
        "slots": 1,
        "state": "not asked",
        "trouble": None,
        "leases": [],
        "unhealthy": None,
    }


def test_options_stand_before_or_behind(capsys: pytest.CaptureFixture[str], inventory: Path) -> None:
    other = inventory.rename(inventory.with_name("other.toml"))
    assert main(["devices", "--inventory", "other.toml", "--json", "remove", "pi"]) == 0
    assert json.loads(capsys.readouterr().out) == {"inventory": str(other), "removed": "pi"}
    assert main(["devices", "remove", "phone", "--inventory", "other.toml"]) == 0
    assert capsys.readouterr().out == f"Removed phone from {other}.\n"
    assert other.read_text() == ""


def test_add_without_a_probe(capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path) -> None:
    arguments = "devices add pi5 --ssh pi@board:2222 --no-probe --target arm64 --label a --label b --jump gw --jump b@c"
    options = ["--cores", "2-3,6,7", "--slots", "2", "--folder", "/data/x", "--identity-file", "key", "--password"]
    entry = answer(capsys, *arguments.split(), *options, "keyring")
    file = tmp_path / "config" / "devices.toml"
    assert entry == {
        "inventory": str(file),
        "device": {
            "name": "pi5",
            "profile": "arm64",
            "transport": "ssh",
            "address": "pi@board:2222",
            "identity_file": str(folder / "key"),
            "jump": ["gw", "b@c"],
            "password": "keyring",
            "labels": ["a", "b"],
            "slots": 2,
            "cores": [2, 3, 6, 7],
            "folder": "/data/x",
        },
        "probe": None,
    }
    assert main("devices add phone --usb --serial R58 --no-probe -t arm64".split()) == 0
    assert main("devices add tcp --adb 10.0.0.2 --no-probe -t arm64".split()) == 0
    assert [device.name for device in load_inventory(file).devices] == ["pi5", "phone", "tcp"]


def test_add_what_a_packages_transport_reaches(
    capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_package(folder, "lab", {TRANSPORTS.group: {"bench": "no_such_module:Bench"}}, {}, monkeypatch)
    assert main("devices add left --url bench://rack/3 --no-probe -t arm64 --label rack".split()) == 0
    (device,) = load_inventory(tmp_path / "config" / "devices.toml").devices
    assert (device.transport, device.place.address) == ("bench", UrlAddress("bench://rack/3"))
    capsys.readouterr()
    assert main("devices add right --url benhc://rack/3 --no-probe -t arm64".split()) == 2
    assert "the nearest is 'bench'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("add x --url here", "--url got 'here'; expected NAME://"),
        ("add x --url ssh://pi@board", "'ssh://pi@board' is not an SSH address"),
        ("add pi --ssh x", "already has a device 'pi'"),
        ("add x", "A device is reached in one way. Give one of --ssh, --adb, --usb and --url"),
        ("add x --ssh a --usb", "A device is reached in one way"),
        ("add x --ssh a --no-probe", "the device's profile is not known. Name it with --target"),
        ("add x --ssh a --serial s", "key 'serial' belongs to transport \"adb\" alone"),
        ("add x --ssh a:b", "'a:b' is not an SSH address"),
        ("add qemu --ssh a", "a device cannot be called 'qemu'"),
        ("add x --ssh a --target arm46", "there is no target profile 'arm46'; the nearest is 'arm64'"),
        ("add x --ssh a --cores 3-1", "ranges from a lower to a higher core"),
        ("add x --adb a --password prompt", "key 'password' belongs to transport \"ssh\" alone"),
        ("remove po", "There is no device 'po'"),
        ("probe", "No device was named"),
        ("probe label:attic", "has the label 'attic'"),
        ("check", "--all"),
        ("check pi --all", "--all"),
        ("lease pi --for ever", "'ever' is not a duration"),
        ("lease pi --for 1000h", "a lease lasts 7 days at most"),
        ("release phones", "the nearest is 'phone'"),
        ("password phone", "over ADB, which has no passwords"),
        ("--inventory none.toml", "There is no inventory"),
    ],
)
def test_wrong_usage(capsys: pytest.CaptureFixture[str], inventory: Path, arguments: str, words: str) -> None:
    assert words in complaint(capsys, "devices", *arguments.split())
    assert inventory.read_text() == PI + PHONE


def test_a_password_is_asked_on_a_terminal_alone(capsys: pytest.CaptureFixture[str], inventory: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "halide_autotune.sdk.main", "devices", "--inventory", str(inventory), "password", "pi"],
        cwd=inventory.parent,
        env={"PATH": "/usr/bin:/bin", "HOME": str(inventory.parent)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (process.returncode, process.stdout) == (1, "")
    assert "no terminal to ask on" in process.stderr
    assert process.stderr.count("\n") == 1


def test_names_complete(inventory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def offered(line: str) -> list[str]:
        monkeypatch.setenv("_SDK_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
        with pytest.raises(SystemExit):
            main([])
        return capsys.readouterr().out.split()

    assert offered("sdk devices check p") == ["pi", "phone"]
    inventory.rename(inventory.with_name("other.toml"))
    assert offered("sdk devices check p") == []
    assert offered("sdk devices check --inventory other.toml ph") == ["phone"]
    inventory.write_text("broken")
    assert offered("sdk devices check p") == []


@pytest.mark.parametrize("command", ["", "add", "probe", "check", "lease", "release", "remove", "password"])
def test_every_command_has_help_with_an_example(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert main(["devices", *command.split(), "--help"]) == 0
    text = capsys.readouterr().out
    assert f"Example: sdk devices {command}".rstrip() in text
    assert "--json" in text
    assert "--inventory" in text
