"""The ADB link against emulated devices, which `test_adb_device.py` proves with the real adb client."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from halide_autotune.devices.adb.link import AdbLink
from halide_autotune.devices.adb.wire import AdbLimits
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.targets.errors import DeviceError
from tests.adb_device.adb_device import AdbDevice
from tests.adb_device.device_options import DeviceOptions, old_phone
from tests.adb_device.link_outcomes import output, trouble
from tests.adb_device.link_to import SHORT_LIMITS, link_to
from tests.adb_device.programs import running_programs
from tests.process_state import PATIENCE_S, await_file, has_ended

OPTIONS = {"new": DeviceOptions(), "old": old_phone()}
# For tests that wait, and where old and new devices do not differ.
only_new = pytest.mark.parametrize("device", ["new"], indirect=True)


@pytest.fixture(params=OPTIONS)
def device(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AdbDevice]:
    with AdbDevice(tmp_path / "device", OPTIONS[request.param]) as emulated:
        yield emulated


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a key that is made once."""
    return tmp_path_factory.mktemp("keys")


@pytest.fixture
def link(device: AdbDevice, keys: Path) -> Iterator[AdbLink]:
    connected = link_to(device.port, keys)
    connected.connect()
    yield connected
    connected.close()


@pytest.fixture
def impatient_link(device: AdbDevice, keys: Path) -> Iterator[AdbLink]:
    """For silent devices."""
    connected = link_to(device.port, keys, limits=SHORT_LIMITS)
    connected.connect()
    yield connected
    connected.close()


def script(device: AdbDevice, name: str, text: str) -> str:
    """A shell script on the device, as a word for `stream`."""
    (device.temporary / name).write_text(text)
    return f"/data/local/tmp/{name}"


# Programs


def test_output_of_both_streams_comes_whole(link: AdbLink, device: AdbDevice) -> None:
    path = script(device, "talk", "echo out; echo err >&2; head -c 300000 /dev/zero | tr '\\000' x; exit 3")
    assert output(link, "sh", path) == b"out\nerr\n" + b"x" * 300_000


def test_bytes_are_not_changed_without_a_terminal(tmp_path: Path, keys: Path) -> None:
    with AdbDevice(tmp_path / "device") as device:
        link = link_to(device.port, keys)
        link.connect()
        content = bytes(range(256)) * 100
        (device.temporary / "bytes").write_bytes(content)
        assert b"".join(link.stream(["cat", "/data/local/tmp/bytes"])) == content
        link.close()


def test_many_programs_over_one_connection(link: AdbLink) -> None:
    assert [output(link, "echo", str(number)) for number in range(50)] == [b"%d\n" % number for number in range(50)]


def test_an_odd_word_never_reaches_the_device(link: AdbLink) -> None:
    with pytest.raises(ValueError):
        link.stream(["echo", "$(reboot)"])
    assert output(link, "echo", "on") == b"on\n"


@pytest.mark.slow
@only_new
def test_a_program_may_be_silent_for_longer_than_any_limit(impatient_link: AdbLink, device: AdbDevice) -> None:
    # adb-shell gives up after ten silent seconds, this link's own limit for owed answers is eight.
    go = device.temporary / "go"
    path = script(device, "quiet", f"echo start; while [ ! -e {go} ]; do sleep 0.1; done; echo end")
    pieces = []
    until_s = time.monotonic() + 18
    for piece in impatient_link.stream(["sh", path]):
        pieces.append(piece)
        # The caller is told again and again that nothing came.
        if pieces.count(b"") > 12 and time.monotonic() > until_s:
            go.touch()
    assert b"".join(pieces).replace(b"\r\n", b"\n") == b"start\nend\n"


def test_nothing_is_lost_of_a_program_that_dribbles(link: AdbLink, device: AdbDevice) -> None:
    go = device.temporary / "go"
    wait = f"while [ ! -e {go}$i ]; do sleep 0.02; done"
    path = script(device, "dribble", f"for i in 1 2 3 4 5 6 7 8; do printf $i; {wait}; printf .; done")
    pieces = []
    for piece in link.stream(["sh", path]):
        pieces.append(piece)
        if not piece:  # the next byte comes once the caller was told that none came
            Path(f"{go}{pieces.count(b'')}").touch()
    assert b"".join(pieces) == b"1.2.3.4.5.6.7.8."


def test_nothing_is_lost_of_packets_that_come_in_pieces(link: AdbLink, device: AdbDevice) -> None:
    path = script(device, "slow", "head -c 30000 /dev/zero | tr '\\000' x")
    device.slow_down(20_000)
    pieces = list(link.stream(["sh", path]))
    assert b"".join(pieces) == b"x" * 30_000
    assert b"" in pieces


def test_hanging_up_early_reaches_the_program(link: AdbLink, device: AdbDevice) -> None:
    mark = device.temporary / "mark"
    # Without a terminal a program finds out when it writes.
    path = script(device, "run", f"echo $$ > {mark}\nwhile :; do echo alive || exit; sleep 0.05; done")
    stream = link.stream(["exec", "sh", path])
    while not next(stream):
        pass
    pid = int(await_file(mark))
    assert isinstance(stream, Generator)
    stream.close()
    assert has_ended(pid)
    assert output(link, "echo", "on") == b"on\n", "the connection did not go on"


def test_closing_the_link_reaches_the_program(link: AdbLink, device: AdbDevice) -> None:
    mark = device.temporary / "mark"
    path = script(device, "run", f"echo $$ > {mark}\nwhile :; do echo alive || exit; sleep 0.05; done")
    stream = link.stream(["exec", "sh", path])
    while not next(stream):
        pass
    pid = int(await_file(mark))
    link.close()
    assert has_ended(pid)


def test_a_request_longer_than_a_packet_is_a_fault_of_ours(tmp_path: Path, keys: Path) -> None:
    with AdbDevice(tmp_path / "device", old_phone()) as device:
        link = link_to(device.port, keys)
        link.connect()
        with pytest.raises(ValueError):
            output(link, "echo", "x" * 5000)
        link.close()


def test_interrupting_a_caller_closes_the_connection(link: AdbLink) -> None:
    stream = link.stream(["sleep", "1000"])
    next(stream)
    assert isinstance(stream, Generator)
    with pytest.raises(KeyboardInterrupt):
        stream.throw(KeyboardInterrupt)
    with trouble(TroubleKind.LOST, "not connected"):
        output(link, "true")


# Files


@pytest.mark.parametrize("size_bytes", [0, 1, 4087, 4088, 65527, 65528, 65529, 262_136, 3_000_001])
def test_files_go_there_and_back(link: AdbLink, device: AdbDevice, tmp_path: Path, size_bytes: int) -> None:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(size_bytes))
    link.put(source, "/data/local/tmp/new/folder/file")
    assert (device.temporary / "new/folder/file").read_bytes() == source.read_bytes()
    assert os.access(device.temporary / "new/folder/file", os.X_OK)
    link.get("/data/local/tmp/new/folder/file", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == source.read_bytes()


def test_a_file_replaces_another_even_one_that_runs(
    link: AdbLink, device: AdbDevice, tmp_path: Path, keys: Path
) -> None:
    shutil.copy("/bin/sleep", tmp_path / "sleep")
    link.put(tmp_path / "sleep", "/data/local/tmp/program")
    stream = link.stream(["/data/local/tmp/program", "1000"])
    next(stream)
    (tmp_path / "other").write_bytes(b"other")
    second = link_to(device.port, keys)
    second.connect()
    second.put(tmp_path / "other", "/data/local/tmp/program")
    second.close()
    assert (device.temporary / "program").read_bytes() == b"other"


def test_a_missing_file_is_told_and_the_connection_goes_on(link: AdbLink, tmp_path: Path) -> None:
    with trouble(TroubleKind.BROKEN, "phone", "/data/local/tmp/none", "No such file"):
        link.get("/data/local/tmp/none", tmp_path / "back")
    assert output(link, "echo", "on") == b"on\n"


def test_a_path_that_cannot_be_written_is_told(link: AdbLink, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with trouble(TroubleKind.BROKEN, "phone", "ermission denied"):
        link.put(tmp_path / "file", "/vendor/../../../file")
    assert output(link, "echo", "on") == b"on\n"


@pytest.mark.parametrize("free_bytes", [0, 1000, 500_000, 1_999_999])
def test_full_storage_is_noticed(link: AdbLink, device: AdbDevice, tmp_path: Path, free_bytes: int) -> None:
    (tmp_path / "file").write_bytes(os.urandom(2_000_000))
    device.fill_storage(free_bytes)
    with trouble(TroubleKind.FULL, "phone", "No space left", "Free some storage"):
        link.put(tmp_path / "file", "/data/local/tmp/file")
    device.fill_storage(None)
    link.put(tmp_path / "file", "/data/local/tmp/file")
    assert (device.temporary / "file").stat().st_size == 2_000_000


def test_a_local_file_that_is_missing_is_not_the_devices_fault(link: AdbLink, tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="none") as caught:
        link.put(tmp_path / "none", "/data/local/tmp/file")
    assert not isinstance(caught.value, DeviceTrouble)
    with pytest.raises(DeviceError, match="folder"):
        link.get("/data/local/tmp/file", tmp_path / "no folder" / "file")
    assert output(link, "echo", "on") == b"on\n"


@pytest.mark.slow
def test_a_big_file_over_a_slow_link_of_small_packets(tmp_path: Path, keys: Path) -> None:
    options = DeviceOptions(segment_bytes=536, receive_buffer_bytes=4096)
    with AdbDevice(tmp_path / "device", options) as device:
        device.slow_down(3_000_000)
        link = link_to(device.port, keys)
        link.connect()
        (tmp_path / "big").write_bytes(os.urandom(30_000_000))
        link.put(tmp_path / "big", "/data/local/tmp/big")
        assert (device.temporary / "big").read_bytes() == (tmp_path / "big").read_bytes()
        link.close()


@pytest.mark.slow
def test_a_link_that_moves_is_never_silent(tmp_path: Path, keys: Path) -> None:
    # Each direction takes longer than the silence limit.
    with AdbDevice(tmp_path / "device", DeviceOptions(segment_bytes=536, receive_buffer_bytes=4096)) as device:
        link = link_to(device.port, keys, limits=AdbLimits(silence_s=4.0))
        link.connect()
        device.slow_down(130_000)
        (tmp_path / "file").write_bytes(os.urandom(800_000))
        link.put(tmp_path / "file", "/data/local/tmp/file")
        link.get("/data/local/tmp/file", tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == (tmp_path / "file").read_bytes()
        link.close()


# Troubles


@only_new
def test_a_device_that_falls_silent_in_a_push(impatient_link: AdbLink, device: AdbDevice, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(10_000_000))
    device.silence_after(1_000_000)
    with trouble(TroubleKind.TIMEOUT, "phone", "8 s"):
        impatient_link.put(tmp_path / "file", "/data/local/tmp/file")
    with trouble(TroubleKind.LOST, "not connected"):
        output(impatient_link, "true")


@only_new
def test_a_device_that_falls_silent_in_a_pull(impatient_link: AdbLink, device: AdbDevice, tmp_path: Path) -> None:
    (device.temporary / "file").write_bytes(bytes(10_000_000))
    device.silence_after(1_000_000)
    with trouble(TroubleKind.TIMEOUT, "phone"):
        impatient_link.get("/data/local/tmp/file", tmp_path / "back")


@only_new
def test_a_device_that_does_not_start_a_program(impatient_link: AdbLink, device: AdbDevice) -> None:
    device.silence()
    with trouble(TroubleKind.TIMEOUT, "does not start"):
        output(impatient_link, "true")


@only_new
def test_a_silent_program_on_a_silent_device_is_the_callers_to_judge(
    impatient_link: AdbLink, device: AdbDevice
) -> None:
    stream = impatient_link.stream(["sleep", "1000"])
    next(stream)
    device.silence()
    until_s = time.monotonic() + 10  # longer than the silence limit
    while time.monotonic() < until_s:
        assert next(stream) == b""
    impatient_link.close()


@pytest.mark.parametrize("size_bytes", [30, 5_000, 1_000_000])
def test_a_connection_lost_in_a_transfer(link: AdbLink, device: AdbDevice, tmp_path: Path, size_bytes: int) -> None:
    (tmp_path / "file").write_bytes(os.urandom(2_000_000))
    device.drop_after(size_bytes)
    with trouble(TroubleKind.LOST, "phone"):
        link.put(tmp_path / "file", "/data/local/tmp/file")
    link.connect()
    link.put(tmp_path / "file", "/data/local/tmp/file")
    device.drop_after(size_bytes)
    with trouble(TroubleKind.LOST, "phone"):
        link.get("/data/local/tmp/file", tmp_path / "back")
    link.connect()
    link.get("/data/local/tmp/file", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == (tmp_path / "file").read_bytes()


def test_a_connection_lost_under_a_program(link: AdbLink, device: AdbDevice) -> None:
    stream = link.stream(["sleep", "1000"])
    next(stream)
    device.drop_connections()
    with trouble(TroubleKind.LOST, "closed the connection"):
        list(stream)
    link.connect()
    assert output(link, "echo", "on") == b"on\n"


def test_garbage_on_the_wire(link: AdbLink, device: AdbDevice) -> None:
    stream = link.stream(["sleep", "1000"])
    next(stream)
    device.garble()
    with trouble(TroubleKind.PROTOCOL_ERROR, "not an ADB packet"):
        list(stream)
    link.connect()
    assert output(link, "echo", "on") == b"on\n"


def test_a_program_that_is_killed_ends_its_stream(link: AdbLink, device: AdbDevice) -> None:
    stream = link.stream(["sleep", "1000"])
    while not running_programs(device.files.root):
        next(stream)
    device.kill_programs()
    list(stream)
    assert output(link, "echo", "on") == b"on\n"


def test_a_reboot_loses_the_connection_and_a_new_one_finds_the_files(
    link: AdbLink, device: AdbDevice, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"kept")
    link.put(tmp_path / "file", "/data/local/tmp/file")
    boot_id = output(link, "cat", "/proc/sys/kernel/random/boot_id")
    stream = link.stream(["sleep", "1000"])
    next(stream)
    device.reboot_s = 600.0
    device.reboot_soon()
    with trouble(TroubleKind.LOST, "phone"):
        list(stream)
    _connect_patiently(link, device)
    assert output(link, "cat", "/data/local/tmp/file") == b"kept"
    assert output(link, "cat", "/proc/sys/kernel/random/boot_id") != boot_id


def _connect_patiently(link: AdbLink, device: AdbDevice) -> None:
    """Connect as a caller does that waits for a device, which comes back once it has been seen to be off."""
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        try:
            return link.connect()
        except DeviceTrouble as refused:
            assert refused.kind in (TroubleKind.UNREACHABLE, TroubleKind.LOST), refused
            if refused.kind is TroubleKind.UNREACHABLE:
                device.end_reboot()
            time.sleep(0.1)
    raise AssertionError("the device did not come back")
