"""The emulated Android device against the real adb client: what the link is tested with must itself be right."""

from __future__ import annotations

import os
import shutil
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adb_device.adb_device import AdbDevice
from tests.adb_device.device_options import DeviceOptions, old_phone
from tests.adb_device.programs import running_programs
from tests.adb_device.real_adb import RealAdb

pytestmark = pytest.mark.skipif(shutil.which("adb") is None, reason="adb is not installed")

OPTIONS = {"new": DeviceOptions(), "old": old_phone()}


@pytest.fixture(scope="module")
def adb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAdb]:
    with RealAdb(tmp_path_factory.mktemp("adb") / "home") as client:
        yield client


@pytest.fixture(params=OPTIONS)
def device(request: pytest.FixtureRequest, tmp_path: Path, adb: RealAdb) -> Iterator[AdbDevice]:
    with AdbDevice(tmp_path / "device", OPTIONS[request.param]) as emulated:
        assert adb.connect(emulated.port).startswith("connected to")
        yield emulated
        adb.run("disconnect", f"127.0.0.1:{emulated.port}")


@pytest.fixture
def new_device(tmp_path: Path, adb: RealAdb) -> Iterator[AdbDevice]:
    with AdbDevice(tmp_path / "new") as emulated:
        assert adb.connect(emulated.port).startswith("connected to")
        yield emulated
        adb.run("disconnect", f"127.0.0.1:{emulated.port}")


def test_the_device_is_listed(adb: RealAdb, device: AdbDevice) -> None:
    assert adb.state(device.port) == "device"
    assert "model:Emulated" in adb.run("devices", "-l").stdout.decode()


@pytest.mark.parametrize("code", [0, 1, 77, 255])
def test_exit_codes_of_a_new_device(adb: RealAdb, new_device: AdbDevice, code: int) -> None:
    outcome = adb.run("shell", f"echo out; echo err >&2; exit {code}", port=new_device.port)
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (code, b"out\n", b"err\n")


def test_a_death_by_signal_of_a_new_device(adb: RealAdb, new_device: AdbDevice) -> None:
    assert adb.run("shell", "kill -9 $$", port=new_device.port).returncode == 137


def test_an_old_device_has_a_terminal_and_no_exit_codes(adb: RealAdb, tmp_path: Path) -> None:
    with AdbDevice(tmp_path / "old", old_phone()) as device:
        adb.connect(device.port)
        outcome = adb.run("shell", "test -t 1 && echo terminal; exit 7", port=device.port)
        assert (outcome.returncode, outcome.stdout) == (0, b"terminal\r\n")


def test_standard_input_is_passed_on(adb: RealAdb, new_device: AdbDevice) -> None:
    data = os.urandom(300_000)
    outcome = adb.run("shell", "cat", port=new_device.port, stdin=data)
    assert outcome.stdout == data


def test_exec_out_is_raw(adb: RealAdb, device: AdbDevice) -> None:
    outcome = adb.run("exec-out", "printf 'a\\nb\\000c'; head -c 2000000 /dev/zero", port=device.port)
    assert outcome.stdout == b"a\nb\0c" + bytes(2_000_000)


def test_the_serial_is_a_property(adb: RealAdb, device: AdbDevice) -> None:
    assert adb.run("shell", "getprop ro.serialno", port=device.port).stdout.split() == [b"EMULATED01"]


def test_files_of_several_megabytes_go_there_and_back(adb: RealAdb, device: AdbDevice, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(5_000_001))
    source.chmod(0o744)
    os.utime(source, (1_600_000_000, 1_600_000_000))
    sent = adb.run("push", str(source), "/data/local/tmp/a/b/file", port=device.port)
    assert sent.returncode == 0, sent.stdout
    there = device.temporary / "a" / "b" / "file"
    assert there.read_bytes() == source.read_bytes()
    assert (stat.S_IMODE(there.stat().st_mode), there.stat().st_mtime) == (0o777, 1_600_000_000)
    back = adb.run("pull", "/data/local/tmp/a/b/file", str(tmp_path / "back"), port=device.port)
    assert back.returncode == 0, back.stdout
    assert (tmp_path / "back").read_bytes() == source.read_bytes()


def test_a_folder_is_listed(adb: RealAdb, device: AdbDevice) -> None:
    (device.temporary / "one").write_bytes(bytes(0x123))
    (device.temporary / "two").mkdir()
    lines = adb.run("ls", "/data/local/tmp", port=device.port).stdout.decode().splitlines()
    assert [line.split()[3] for line in lines] == [".", "..", "one", "two"]
    assert lines[2].split()[1] == "00000123"
    assert adb.run("ls", "/data/local/tmp/none", port=device.port).stdout == b""


def test_a_missing_file_is_not_pulled(adb: RealAdb, device: AdbDevice, tmp_path: Path) -> None:
    outcome = adb.run("pull", "/data/local/tmp/none", str(tmp_path / "back"), port=device.port)
    assert outcome.returncode == 1
    assert b"does not exist" in outcome.stdout or b"No such file" in outcome.stdout


def test_file_transfers_do_not_leave_the_device(adb: RealAdb, device: AdbDevice, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (device.temporary / "way_out").symlink_to(tmp_path)
    for path in (f"{tmp_path}/secret", "/data/local/tmp/../../../../secret", "/data/local/tmp/way_out/secret"):
        assert adb.run("pull", path, str(tmp_path / "back"), port=device.port).returncode == 1
        assert adb.run("push", str(tmp_path / "secret"), path + "2", port=device.port).returncode == 1
    assert not (tmp_path / "secret2").exists()


def test_full_storage_is_told(adb: RealAdb, device: AdbDevice, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(3_000_000))
    device.fill_storage(1_000_000)
    outcome = adb.run("push", str(tmp_path / "big"), "/data/local/tmp/big", port=device.port)
    assert outcome.returncode == 1
    assert b"No space left on device" in outcome.stdout
    device.fill_storage(None)
    assert adb.run("push", str(tmp_path / "big"), "/data/local/tmp/big", port=device.port).returncode == 0


def test_a_reboot_ends_programs_and_keeps_files(adb: RealAdb, device: AdbDevice) -> None:
    (device.temporary / "kept").touch()
    adb.run("shell", "trap '' HUP; cd /; sleep 1000 > /dev/null 2>&1 & echo", port=device.port)
    assert running_programs(device.files.root)
    before = device.boot_id
    adb.run("reboot", port=device.port)
    assert device.await_boot_after(before)
    assert not running_programs(device.files.root)
    adb.run("disconnect", f"127.0.0.1:{device.port}")
    assert adb.await_state(device.port, ""), "adb forgets it only after it has answered"
    assert adb.connect(device.port).startswith("connected to")
    assert adb.await_state(device.port, "device")
    boot_id = adb.run("shell", "cat /proc/sys/kernel/random/boot_id", port=device.port).stdout.strip().decode()
    assert boot_id == device.boot_id != before
    assert (device.temporary / "kept").exists()


def test_a_known_key_is_let_in(adb: RealAdb, tmp_path: Path) -> None:
    with AdbDevice(tmp_path / "device", DeviceOptions(asks_for_keys=True)) as device:
        device.accept_key(adb.public_key_file)
        adb.connect(device.port)
        assert adb.await_state(device.port, "device")


def test_an_unknown_key_waits_for_its_user(adb: RealAdb, tmp_path: Path) -> None:
    with AdbDevice(tmp_path / "device", DeviceOptions(asks_for_keys=True)) as device:
        tapper = threading.Thread(target=device.tap_allow)
        adb.connect(device.port)
        assert adb.await_state(device.port, "unauthorized")
        assert adb.run("shell", "echo", port=device.port).returncode == 1
        tapper.start()
        tapper.join()
        assert adb.await_state(device.port, "device")
        # The key was remembered.
        adb.run("disconnect", f"127.0.0.1:{device.port}")
        adb.connect(device.port)
        assert adb.await_state(device.port, "device")


def test_two_clients_at_once(adb: RealAdb, new_device: AdbDevice, tmp_path: Path) -> None:
    with RealAdb(tmp_path / "another home") as other:
        other.connect(new_device.port)
        assert other.run("shell", "echo two", port=new_device.port).stdout == b"two\n"
        assert adb.run("shell", "echo one", port=new_device.port).stdout == b"one\n"


LOADER = Path("/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1")


@pytest.mark.skipif(
    not (shutil.which("qemu-aarch64") and LOADER.exists()), reason="the arm64 emulator is not installed"
)
def test_programs_for_another_machine_run_under_the_launcher(adb: RealAdb, tmp_path: Path) -> None:
    with AdbDevice(tmp_path / "device", DeviceOptions(launcher=("qemu-aarch64",))) as device:
        adb.connect(device.port)
        adb.run("push", str(LOADER), "/data/local/tmp/program", port=device.port)
        outcome = adb.run("shell", "/data/local/tmp/program --version", port=device.port)
        assert outcome.returncode == 0 and b"ld.so" in outcome.stdout
        assert adb.run("shell", "echo this machine", port=device.port).stdout == b"this machine\n"


def test_faults_reach_the_client(adb: RealAdb, new_device: AdbDevice) -> None:
    # adb comes back by itself where it can.
    new_device.close_port()
    new_device.drop_after(200_000)
    assert len(adb.run("exec-out", "head -c 1000000 /dev/zero", port=new_device.port).stdout) < 1_000_000
    assert adb.await_state(new_device.port, "offline")
