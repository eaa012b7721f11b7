"""The transport sends and fetches files: damaged ones, and connections that are lost meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.remote.transport import AgentTransport
from tests.contract.local_link import LocalLink, lost

# The first one builds the agent, and the C library for it.
pytestmark = pytest.mark.toolchain

TIME_S = 60.0


def flip(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :]


def test_unchanged_content_is_not_sent_again(
    transport: AgentTransport, link: LocalLink, program: Path, home: Path
) -> None:
    transport.push(program, "p")
    sent = len(link.puts)
    transport.push(program, "p")
    assert len(link.puts) == sent
    program.chmod(0o644)
    transport.push(program, "p")
    assert len(link.puts) == sent + 1
    program.chmod(0o755)
    transport.push(program, "p")
    # What the device's own program has changed is sent again.
    transport.run("p", ["echo changed > other; cat other > p"], TIME_S)
    sent = len(link.puts)
    transport.push(program, "p")
    assert len(link.puts) == sent + 1


def test_a_file_damaged_on_the_way_is_sent_again(transport: AgentTransport, link: LocalLink, program: Path) -> None:
    transport.open()
    link.damage_put = [flip]
    transport.push(program, "p")
    assert transport.run("p", ["echo whole"], TIME_S).output == "whole\n"


def test_a_file_damaged_twice_is_given_up(
    transport: AgentTransport, link: LocalLink, program: Path, home: Path
) -> None:
    transport.open()
    link.damage_put = [flip, lambda content: content[:-1]]
    with pytest.raises(DeviceTrouble, match="damaged twice") as caught:
        transport.push(program, "p")
    assert caught.value.kind is TroubleKind.PROTOCOL_ERROR
    left = [path.name for path in (home / "work").glob("s-*/*")]
    assert [name for name in left if not name.startswith(".owner-")] == []


def test_a_pull_damaged_on_the_way_is_repeated_then_given_up(
    transport: AgentTransport, link: LocalLink, program: Path, tmp_path: Path
) -> None:
    transport.push(program, "p")
    link.damage_get = [flip]
    transport.pull("p", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == program.read_bytes()
    link.damage_get = [flip, flip]
    with pytest.raises(DeviceTrouble, match="damaged twice"):
        transport.pull("p", tmp_path / "other")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["back", "program"]


def test_a_connection_lost_while_pushing_is_made_again(
    transport: AgentTransport, link: LocalLink, program: Path
) -> None:
    transport.open()
    link.fail_put = [lost(), lost(TroubleKind.TIMEOUT), lost()]
    transport.push(program, "p")
    assert link.connects == 4
    assert transport.run("p", ["exit 3"], TIME_S).exit_code == 3


def test_a_connection_lost_again_and_again_while_pushing_is_given_up(
    transport: AgentTransport, link: LocalLink, program: Path
) -> None:
    transport.open()
    link.fail_put = [lost() for _ in range(4)]
    with pytest.raises(DeviceTrouble, match="cable") as caught:
        transport.push(program, "p")
    assert caught.value.kind is TroubleKind.LOST
    transport.push(program, "p")
