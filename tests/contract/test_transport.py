"""What every transport promises, whatever is behind it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from halide_autotune.devices.timing.measure_settings import MeasureSettings
from halide_autotune.devices.transport import Transport
from halide_autotune.targets.errors import DeviceError
from halide_autotune.targets.process.stop_signal import StopSignal
from tests.contract.conftest import OpenTransport
from tests.process_state import PATIENCE_S, act_when, under_a_time_limit

HOSTILE_NAMES = [
    "",
    ".",
    "..",
    "../x",
    "/etc/passwd",
    "a/b",
    "a\\b",
    "-rf",
    ".hidden",
    "with space",
    "new\nline",
    "end\n",
    "tab\t",
    "$(reboot)",
    "`x`",
    "a;b",
    "a|b",
    "a&b",
    "quo'te",
    'quo"te',
    "*",
    "?",
    "~",
    "nul\0byte",
    "é",
    "x" * 300,
]
HOSTILE_ARGUMENTS = [
    "two words",
    "",
    "-rf",
    "$(echo no)",
    "`no`",
    "a;b&c|d>e",
    "'",
    '"',
    "\\",
    "*",
    "line\nbreak",
    "é",
    "#",
    "%s",
]
TIME_S = 60.0


def ids_on_device(transport: Transport, name: str, tmp_path: Path) -> list[str]:
    transport.pull(name, tmp_path / "ids")
    return (tmp_path / "ids").read_text().split()


def family_is_there(tmp_path: Path) -> bool:
    """Whether the program has noted its family on the device, which is this machine: nobody else may use it now."""
    try:
        return any(len(note.read_text().split()) == 2 for note in (tmp_path / "devices").rglob("ids"))
    except FileNotFoundError:
        return False  # a folder of the device went away just now


def ends(transport: Transport, pid: str) -> bool:
    deadline_s = time.monotonic() + PATIENCE_S
    while transport.run("probe", ["alive", pid], TIME_S).exit_code == 0:
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize("code", [0, 1, 2, 77, 126, 127, 255])
def test_exit_codes(transport: Transport, code: int) -> None:
    outcome = transport.run("probe", ["exit", str(code)], TIME_S)
    assert (outcome.exit_code, outcome.timed_out, outcome.stopped, outcome.output) == (code, False, False, "")


@pytest.mark.parametrize("number", [6, 8, 9, 11, 15])
def test_a_death_by_signal_is_minus_its_number(transport: Transport, number: int) -> None:
    assert transport.run("probe", ["signal", str(number)], TIME_S).exit_code == -number


def test_arguments_arrive_as_they_are(transport: Transport) -> None:
    outcome = transport.run("probe", ["echo", *HOSTILE_ARGUMENTS], TIME_S)
    heard = [bytes.fromhex(word).decode() for word in outcome.output.strip().split(";")[:-1]]
    assert heard == HOSTILE_ARGUMENTS


def test_of_a_big_output_the_end_is_kept(transport: Transport) -> None:
    outcome = transport.run("probe", ["talk", str(3_000_000)], TIME_S)
    assert outcome.exit_code == 0
    assert outcome.output.rstrip().endswith("the end")
    # In one line a runner tells of each pair of repetitions two times and what was about them: some 50 bytes.
    assert len(outcome.output) > 2 * 50 * MeasureSettings().max_repetitions


def test_output_that_is_no_text_is_read(transport: Transport) -> None:
    assert transport.run("probe", ["bytes"], TIME_S).output.endswith("after")


def test_nothing_is_to_be_read_from_standard_input(transport: Transport) -> None:
    assert transport.run("probe", ["input"], TIME_S).exit_code == 0


def test_files_go_there_and_back(transport: Transport, tmp_path: Path) -> None:
    content = os.urandom(3_000_000)
    (tmp_path / "a file").write_bytes(content)
    transport.push(tmp_path / "a file", "data.raw")
    transport.pull("data.raw", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == content


def test_an_empty_file_goes_there_and_back(transport: Transport, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    transport.push(tmp_path / "empty", "empty")
    transport.pull("empty", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b""


def test_a_program_runs_in_the_devices_folder(transport: Transport, tmp_path: Path) -> None:
    assert transport.run("probe", ["write", "made", "by the program"], TIME_S).exit_code == 0
    transport.pull("made", tmp_path / "made")
    assert (tmp_path / "made").read_text() == "by the program"
    assert transport.run("probe", ["read", "made"], TIME_S).output == "by the program"


def test_pushing_again_replaces(transport: Transport, tmp_path: Path) -> None:
    path = tmp_path / "x"
    for text in ("first", "second, longer", "3rd", "3rd"):
        path.write_text(text)
        transport.push(path, "x")
        assert transport.run("probe", ["read", "x"], TIME_S).output == text


def test_a_pushed_file_and_its_source_are_two_files(transport: Transport, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("mine")
    transport.push(path, "x")
    transport.run("probe", ["write", "x", "the device's"], TIME_S)
    assert path.read_text() == "mine"
    with path.open("w") as file:
        file.write("changed afterwards")
    assert transport.run("probe", ["read", "x"], TIME_S).output == "the device's"
    transport.push(path, "x")
    assert transport.run("probe", ["read", "x"], TIME_S).output == "changed afterwards"


@pytest.mark.parametrize("ending", [".new", ".tmp", ".part", "1"])
def test_pushing_a_file_leaves_its_neighbours_alone(transport: Transport, tmp_path: Path, ending: str) -> None:
    (tmp_path / "x").write_text("neighbour")
    transport.push(tmp_path / "x", "a" + ending)
    transport.push(tmp_path / "x", "a")
    (tmp_path / ("back" + ending)).write_text("mine")
    transport.pull("a", tmp_path / "back")
    assert (tmp_path / ("back" + ending)).read_text() == "mine"
    assert transport.run("probe", ["read", "a" + ending], TIME_S).output == "neighbour"


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_are_refused_everywhere(transport: Transport, tmp_path: Path, name: str) -> None:
    (tmp_path / "source").touch()
    attempts: list[Callable[[], object]] = [
        lambda: transport.push(tmp_path / "source", name),
        lambda: transport.pull(name, tmp_path / "back"),
        lambda: transport.run(name, [], TIME_S),
        lambda: transport.remove(name),
    ]
    for attempt in attempts:
        with pytest.raises(DeviceError, match="file name"):
            attempt()
    assert not (tmp_path / "back").exists()


@pytest.mark.parametrize("name", ["a", "A-1", "x+y", "_x", "1", "a.b.c", "x" * 200])
def test_plain_names_work(transport: Transport, probe: Path, name: str) -> None:
    transport.push(probe, name)
    assert transport.run(name, ["exit", "3"], TIME_S).exit_code == 3
    transport.remove(name)


def test_pulling_a_missing_file_leaves_nothing(transport: Transport, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("before")
    for destination in ("kept", "fresh"):
        with pytest.raises(DeviceError, match="missing"):
            transport.pull("missing", tmp_path / destination)
    assert (tmp_path / "kept").read_text() == "before"
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == ["kept"]


def test_pushing_a_missing_file_is_a_device_error(transport: Transport, tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="no-such-file"):
        transport.push(tmp_path / "no-such-file", "x")
    with pytest.raises(DeviceError):
        transport.pull("x", tmp_path / "back")


def test_running_what_is_missing_or_no_program_is_a_device_error(
    transport: Transport, probe: Path, tmp_path: Path
) -> None:
    with pytest.raises(DeviceError, match="missing"):
        transport.run("missing", [], TIME_S)
    (tmp_path / "text").write_text("no program")
    transport.push(tmp_path / "text", "text")
    with pytest.raises(DeviceError, match="text"):
        transport.run("text", [], TIME_S)


def test_removing(transport: Transport, tmp_path: Path) -> None:
    transport.remove("probe")
    transport.remove("probe")
    with pytest.raises(DeviceError):
        transport.run("probe", ["exit", "0"], TIME_S)


def test_the_deadline_ends_a_program_with_its_children(transport: Transport, tmp_path: Path) -> None:
    outcome = under_a_time_limit(
        lambda limit_s: transport.run("probe", ["family", "ids"], limit_s), lambda: family_is_there(tmp_path)
    )
    assert outcome.timed_out and not outcome.stopped
    ids = ids_on_device(transport, "ids", tmp_path)
    assert len(ids) == 2 and all(ends(transport, pid) for pid in ids)


def test_the_stop_signal_ends_a_program_with_its_children(transport: Transport, tmp_path: Path) -> None:
    stop = StopSignal()
    stopper = act_when(lambda: family_is_there(tmp_path), stop.set)
    outcome = transport.run("probe", ["family", "ids"], 2 * PATIENCE_S, stop)
    stopper.join()
    assert outcome.stopped and not outcome.timed_out
    assert all(ends(transport, pid) for pid in ids_on_device(transport, "ids", tmp_path))


def test_after_a_killed_program_the_device_is_as_good_as_before(transport: Transport) -> None:
    assert transport.run("probe", ["family", "ids"], 0.5).timed_out
    assert transport.run("probe", ["exit", "5"], TIME_S).exit_code == 5


def test_two_transports_do_not_see_each_others_files(
    transport: Transport, open_transport: OpenTransport, probe: Path
) -> None:
    other = open_transport(1)
    other.push(probe, "probe")
    transport.run("probe", ["write", "note", "mine"], TIME_S)
    assert other.run("probe", ["read", "note"], TIME_S).exit_code == 9
    other.close()
    assert transport.run("probe", ["read", "note"], TIME_S).output == "mine"


def test_after_closing_nothing_works_and_nothing_is_left(
    open_transport: OpenTransport, probe: Path, tmp_path: Path
) -> None:
    opened = open_transport(0)
    opened.push(probe, "probe")
    opened.close()
    opened.close()
    with pytest.raises(DeviceError):
        opened.run("probe", ["exit", "0"], TIME_S)
    with pytest.raises(DeviceError):
        opened.push(probe, "probe")
