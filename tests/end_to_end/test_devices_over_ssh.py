"""`sdk devices` with a real OpenSSH server and the real agent behind it."""

from __future__ import annotations

import json
import platform
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.devices.health.health import read_health, record_unhealthy
from halide_autotune.devices.inventory.file import load_inventory
from halide_autotune.devices.lease.token import LeaseToken, keep_token, new_token, read_token
from halide_autotune.devices.remote_place import SshAddress
from halide_autotune.sdk.inventory import device_listing
from halide_autotune.sdk.inventory.connections import connection_settings
from halide_autotune.sdk.main import main
from halide_autotune.sdk.select.chosen_devices import busy_slots
from halide_autotune.sdk.settings import Settings, read_settings
from tests.sshd_server import SSHD, SshdServer, make_key

# The first test builds the agent, which takes a while on a busy machine.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(SSHD is None, reason="sshd is not installed"),
]
Captured = pytest.CaptureFixture[str]
PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_key(tmp_path_factory.mktemp("keys") / "id_ed25519")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Iterator[SshdServer]:
    found = SshdServer(tmp_path_factory.mktemp("sshd"))
    found.authorize(keys.with_suffix(".pub"))
    found.start()
    yield found
    found.kill()


@pytest.fixture
def home(tmp_path: Path, keys: Path, server: SshdServer, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of somebody who may log in, with an inventory of the board `pi`."""
    ssh = tmp_path / "home" / ".ssh"
    ssh.mkdir(parents=True)
    (ssh / "known_hosts").write_text(server.known_hosts_lines())
    (ssh / "id_ed25519").symlink_to(keys)
    monkeypatch.setenv("HOME", str(ssh.parent))
    monkeypatch.setenv("SDK_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("SDK_CACHE_DIR", str(settings.cache_folder))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    # On a machine that does other work a login takes seconds.
    monkeypatch.setattr(device_listing, "ANSWER_LIMIT_S", 240.0)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "here" / "devices.toml").write_text(entry("pi", server, tmp_path))
    return ssh.parent


def entry(name: str, server: SshdServer, folder: Path, further: str = "") -> str:
    profile = {"x86_64": "x86-64", "aarch64": "arm64"}[platform.machine()]
    return (
        f'# {name}\n[devices.{name}]\nprofile = "{profile}"\ntransport = "ssh"\n'
        f'address = "{server.user}@{server.address}:{server.port}"\n'
        f'folder = "{folder}/device"\nlease_folder = "{folder}/leases"\n{further}\n'
    )


def answer(captured: Captured, *arguments: str, code: int = 0) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == code, captured.readouterr().err
    found: dict[str, Any] = json.loads(captured.readouterr().out)
    return found


def state(captured: Captured, name: str = "pi") -> dict[str, Any]:
    devices = answer(captured, "devices")["devices"]
    assert isinstance(devices, list)
    return {device["name"]: device for device in devices}[name]


def test_add_looks_at_the_device_and_writes_what_it_found(
    home: Path, server: SshdServer, capsys: Captured, tmp_path: Path
) -> None:
    address = f"{server.user}@{server.address}:{server.port}"
    arguments = ["devices", "add", "board", "--ssh", address, "--folder", f"{tmp_path}/device", "--label", "desk"]
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert "Added board with profile" in text
    assert platform.machine() in text
    device = load_inventory(tmp_path / "here" / "devices.toml").find("board")
    assert device.profile_name == {"x86_64": "x86-64", "aarch64": "arm64"}[platform.machine()]
    assert device.machine.parallelism is not None and device.machine.parallelism >= 1
    facts = dict(device.probed)
    assert facts["architecture"] == platform.machine()
    assert facts["kernel"] == platform.release()
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", str(facts["at"]))
    assert (tmp_path / "here" / "devices.toml").read_text().startswith("# pi\n")


def test_a_core_that_is_not_there_is_refused(home: Path, server: SshdServer, capsys: Captured, tmp_path: Path) -> None:
    address = f"{server.user}@{server.address}:{server.port}"
    file = tmp_path / "here" / "devices.toml"
    before = file.read_text()
    arguments = f"devices add board --ssh {address} --folder {tmp_path}/device --cores 0,4000".split()
    assert main(arguments) == 2
    assert "Device 'board' has no core 4000; it has 0" in capsys.readouterr().err
    assert file.read_text() == before


def test_probe_writes_the_tables_and_leaves_the_rest(home: Path, capsys: Captured, tmp_path: Path) -> None:
    file = tmp_path / "here" / "devices.toml"
    before = file.read_text()
    found = answer(capsys, "devices", "probe", "pi")["devices"]
    assert isinstance(found, list)
    assert found[0]["machine"] == platform.machine()
    assert file.read_text() == before
    assert main(["devices", "probe", "pi", "--write"]) == 0
    assert f"Written to {file}" in capsys.readouterr().out
    assert file.read_text().startswith(before.rstrip())
    assert dict(load_inventory(file).find("pi").probed)["architecture"] == platform.machine()


def test_states_and_leases(home: Path, capsys: Captured, tmp_path: Path) -> None:
    assert state(capsys)["state"] == "free"
    taken = answer(capsys, "devices", "lease", "pi", "--for", "1h")
    assert [3500 < slot["expires_in_s"] <= 3600 for slot in taken["slots"]] == [True]
    leased = state(capsys)
    assert (leased["state"], len(leased["leases"])) == ("leased", 1)
    assert main(["devices"]) == 0
    assert re.search(
        r"leased by \S+@\S+ for [\d.]+ (s|min)( \d+ s)? \(ends in (1 h|5\d min)( \d+ s)?\)", capsys.readouterr().out
    )
    tokens = list((tmp_path / "config" / "leases").iterdir())
    assert [token.stat().st_mode & 0o777 for token in tokens] == [0o600]
    assert main(["devices", "release", "pi"]) == 0
    assert capsys.readouterr().out == "Released pi.\n"
    assert list((tmp_path / "config" / "leases").iterdir()) == []
    assert state(capsys)["state"] == "free"
    assert main(["devices", "release", "pi"]) == 2
    assert "--force" in capsys.readouterr().err


def test_somebody_elses_lease(home: Path, capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDK_CONFIG_DIR", str(tmp_path / "other"))
    assert main(["devices", "lease", "pi"]) == 0
    monkeypatch.setenv("SDK_CONFIG_DIR", str(tmp_path / "config"))
    capsys.readouterr()
    assert main(["devices", "lease", "pi"]) == 1
    captured = capsys.readouterr()
    assert "leased" in captured.err or "held" in captured.err
    assert not list((tmp_path / "config" / "leases").iterdir())
    checks = answer(capsys, "devices", "check", "pi", code=1)["devices"]
    failed = [check["name"] for check in checks[0]["checks"] if not check["passed"]]
    assert "lease" in failed
    assert main(["devices", "lease", "pi", "--force"]) == 0
    assert main(["devices", "release", "pi"]) == 0
    monkeypatch.setenv("SDK_CONFIG_DIR", str(tmp_path / "other"))
    assert main(["devices", "lease", "pi"]) == 0
    monkeypatch.setenv("SDK_CONFIG_DIR", str(tmp_path / "config"))
    assert main(["devices", "release", "pi", "--force"]) == 0
    capsys.readouterr()
    assert state(capsys)["state"] == "free"


def test_what_is_kept_of_a_lease_that_has_ended_is_no_claim(
    home: Path, capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDK_CONFIG_DIR", str(tmp_path / "other"))
    assert main(["devices", "lease", "pi"]) == 0
    monkeypatch.setenv("SDK_CONFIG_DIR", str(tmp_path / "config"))
    (device,) = load_inventory(tmp_path / "here" / "devices.toml").devices
    folder = connection_settings(read_settings()).token_folder
    keep_token(folder, device.place, LeaseToken(new_token(), time.time() - 60.0))
    assert "leased by" in busy_slots([device], read_settings())["pi"]
    assert main(["devices", "lease", "pi"]) == 1
    kept = read_token(folder, device.place)
    assert kept is None or not kept.left_s, "a run of this user's would ask the device with it"
    keep_token(folder, device.place, LeaseToken(new_token(), time.time() + 600.0))
    assert busy_slots([device], read_settings()) == {}
    assert main(["devices", "release", "pi", "--force"]) == 0
    assert "Released" in capsys.readouterr().out


def test_slots_are_leased_together_or_one_by_one(
    home: Path, server: SshdServer, capsys: Captured, tmp_path: Path
) -> None:
    file = tmp_path / "here" / "devices.toml"
    file.write_text(entry("pi", server, tmp_path, "slots = 2\ncores = [0, 1]"))
    answer(capsys, "devices", "lease", "pi.2")
    assert [lease["slot"] for lease in state(capsys)["leases"]] == [1]
    answer(capsys, "devices", "lease", "pi")
    assert len(state(capsys)["leases"]) == 2
    assert answer(capsys, "devices", "release", "pi")["released"] is True
    assert state(capsys)["state"] == "free"


def test_check_says_what_is_wrong_and_forgets_what_was(
    home: Path, server: SshdServer, capsys: Captured, tmp_path: Path
) -> None:
    address = SshAddress(server.address, server.port, server.user)
    health = tmp_path / "config" / "health"
    record_unhealthy(health, address, "It fell silent.", 1e9)
    assert state(capsys)["state"] == "unhealthy"
    code = main(["devices", "check", "pi", "--json"])
    found = json.loads(capsys.readouterr().out)
    checks = {check["name"]: check for check in found["devices"][0]["checks"]}
    for name in ("connection", "agent", "storage", "lease", "clock"):
        assert checks[name]["passed"], checks[name]
    assert {"governor", "temperature", "steady speed", "load"} <= set(checks)
    # This machine may be busy, and is then no steady device.
    wrong = {name for name, check in checks.items() if not check["passed"]}
    assert wrong <= {"steady speed", "load", "temperature"}
    assert all(check["passed"] == (check["fix"] == "") for check in checks.values())
    assert found["passed"] == (code == 0) == (read_health(health, address) is None)


def test_a_device_that_is_gone(home: Path, server: SshdServer, capsys: Captured, tmp_path: Path) -> None:
    file = tmp_path / "here" / "devices.toml"
    gone = entry("gone", server, tmp_path).replace(f":{server.port}", ":1")
    foreign = entry("foreign", server, tmp_path, 'identity_file = "/no/such/key"')
    file.write_text(gone + entry("pi", server, tmp_path) + foreign)
    devices = answer(capsys, "devices")["devices"]
    assert isinstance(devices, list)
    assert [device["state"] for device in devices] == ["unreachable", "free", "unreachable"]
    assert "/no/such/key" in devices[2]["trouble"]
    assert main(["devices", "check", "--all"]) == 1
    text = capsys.readouterr().out
    assert "failed" in text
    assert "passed" in text
    assert main(["devices", "probe", "gone"]) == 1
    assert capsys.readouterr().err.count("\n") <= 2


def test_a_passphrase_is_asked_for_on_the_terminal(
    home: Path, server: SshdServer, tmp_path: Path, settings: Settings
) -> None:
    key = make_key(tmp_path / "locked", passphrase="open sesame")
    server.authorize(key.with_suffix(".pub"))
    further = f'identity_file = "{key}"\npassword = "prompt"'
    (tmp_path / "here" / "devices.toml").write_text(entry("pi", server, tmp_path, further))
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "SDK_CACHE_DIR": str(settings.cache_folder)}
    command = [
        sys.executable,
        "-m",
        "halide_autotune.sdk.main",
        "devices",
        "--inventory",
        str(tmp_path / "here" / "devices.toml"),
    ]
    typed, terminal = pty.openpty()
    with open(typed, "r+b", buffering=0) as person, open(terminal, "r+b", buffering=0) as screen:
        process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", *command, "probe", "pi"],
            cwd=PROJECT,
            env=environment,
            stdin=screen,
            stdout=screen,
            stderr=screen,
        )
        shown = b""
        while b"Passphrase for" not in shown:
            shown += person.read(4096)
        person.write(b"open sesame\n")
        while platform.release().encode() not in shown:
            shown += person.read(4096)
        person_sees = shown.decode()
        while process.poll() is None:
            if select.select([person], [], [], 0.2)[0]:
                person.read(4096)
    assert process.returncode == 0
    assert "open sesame" not in person_sees
    refused = subprocess.run(
        [*command, "probe", "pi"],
        cwd=PROJECT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert refused.returncode == 1
    assert "no terminal to ask on" in refused.stderr
