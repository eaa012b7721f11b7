"""The transport over the agent: opening, the agent's upload, closing."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from halide_autotune.devices.agent.program import AgentProgram, agent_for
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.remote.transport import AgentTransport
from halide_autotune.targets.errors import DeviceError
from halide_autotune.targets.process.content_cache import ContentCache
from tests.contract.local_device import leases_of, local_transport, release_lease_of, take_lease_of
from tests.contract.local_link import LocalLink, lost

# The first one builds the agent, and the C library for it.
pytestmark = pytest.mark.toolchain

TIME_S = 60.0


def test_opening_tells_about_the_device_and_takes_its_slot(
    transport: AgentTransport, home: Path, cache: ContentCache
) -> None:
    opened = transport.open()
    assert opened.boot == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert opened.architecture
    (lease,) = leases_of(transport)
    assert (lease.slot, lease.owner) == (0, "tester@here")
    other = local_transport(home, cache, owner="other@here")
    with pytest.raises(DeviceTrouble, match="leased by tester@here") as caught:
        other.open()
    assert caught.value.kind is TroubleKind.LEASED
    other.close()
    transport.close()
    again = local_transport(home, cache)
    again.open()
    again.close()


def test_opening_again_asks_the_device_again(transport: AgentTransport, home: Path, cache: ContentCache) -> None:
    transport.open()
    other = local_transport(home, cache, owner="other@here")
    take_lease_of(other, force=True)
    with pytest.raises(DeviceTrouble, match="leased by other@here"):
        transport.open()
    release_lease_of(other)
    transport.open()
    other.close()


def test_looking_takes_no_lease_and_makes_no_folder(transport: AgentTransport, home: Path) -> None:
    assert transport.sense().boot
    assert 0 < transport.canary() < 1
    assert leases_of(transport) == ()
    assert not list((home / "work").glob("s-*"))


def test_the_agent_is_uploaded_once(
    transport: AgentTransport, link: LocalLink, home: Path, cache: ContentCache
) -> None:
    transport.open()
    transport.close()
    second = LocalLink(home)
    local = local_transport(home, cache, link=second)
    local.open()
    local.close()
    assert "settle" in link.commands and "settle" not in second.commands and not second.puts


def test_an_agent_that_is_deleted_comes_back_with_the_files(
    transport: AgentTransport, home: Path, program: Path
) -> None:
    transport.push(program, "p")
    shutil.rmtree(home / "work")
    transport.push(program, "p")
    assert transport.run("p", ["echo here"], TIME_S).output == "here\n"


def test_a_damaged_upload_of_the_agent_is_repeated(transport: AgentTransport, link: LocalLink, home: Path) -> None:
    link.damage_put = [lambda content: content + b"\0"]
    transport.open()
    assert link.commands.count("settle") == 2
    assert not list((home / "work").glob("upload-*"))


def test_an_agent_that_never_arrives_whole_is_given_up(transport: AgentTransport, link: LocalLink, home: Path) -> None:
    link.damage_put = [lambda content: content + b"\0"] * 100
    with pytest.raises(DeviceTrouble, match="did not arrive as it was sent") as caught:
        transport.sense()
    assert caught.value.kind is TroubleKind.PROTOCOL_ERROR
    assert not list((home / "work").iterdir())


def test_an_agent_that_cannot_run_is_shown_with_the_devices_words(home: Path, tmp_path: Path) -> None:
    (tmp_path / "agent").write_bytes(b"\x7fELF no program")
    broken = local_transport(
        home, ContentCache(tmp_path), agent=lambda machine: AgentProgram(tmp_path / "agent", "0" * 64)
    )
    with pytest.raises(DeviceTrouble, match="Exec format error") as caught:
        broken.open()
    assert caught.value.kind is TroubleKind.BROKEN
    assert not list((home / "work").glob("*"))


def test_opening_is_tried_again_after_passing_trouble(transport: AgentTransport, link: LocalLink) -> None:
    link.refuse = [lost(TroubleKind.UNREACHABLE), lost()]
    transport.open()
    assert link.connects == 3


@pytest.mark.parametrize("kind", [TroubleKind.REFUSED, TroubleKind.BROKEN, TroubleKind.FULL])
def test_opening_is_not_tried_again_where_it_cannot_help(
    transport: AgentTransport, link: LocalLink, kind: TroubleKind
) -> None:
    link.refuse = [lost(kind)]
    with pytest.raises(DeviceTrouble, match="cable") as caught:
        transport.open()
    assert caught.value.kind is kind and link.connects == 1


def test_closing_leaves_nothing_and_no_thread(
    transport: AgentTransport, home: Path, program: Path, link: LocalLink
) -> None:
    transport.push(program, "p")
    assert any(thread.name == "lease-heartbeat" for thread in threading.enumerate())
    transport.close()
    assert not any(thread.name == "lease-heartbeat" for thread in threading.enumerate())
    assert [path.name[:6] for path in (home / "work").iterdir()] == ["agent-"]
    with pytest.raises(DeviceError, match="has been closed"):
        transport.sense()


def test_closing_a_dead_device_is_quiet(transport: AgentTransport, link: LocalLink, home: Path) -> None:
    transport.open()
    shutil.rmtree(home)
    link.refuse = [lost()] * 10
    link.fail_put = [lost()] * 10
    transport.close()


def test_old_sessions_are_swept_away(transport: AgentTransport, home: Path) -> None:
    for name, age_s in (("s-aa", 25 * 3600), ("s-bb", 3600), ("kept", 25 * 3600), ("upload-1", 25 * 3600)):
        folder = home / "work" / name
        folder.mkdir(parents=True)
        (folder / "file").touch()
        (folder / "deeper").mkdir(mode=0o500)
        os.utime(folder, (time.time() - age_s,) * 2)
    transport.open()
    left = {path.name for path in (home / "work").iterdir()}
    assert {"s-bb", "kept"} <= left and not {"s-aa", "upload-1"} & left


class EndlessLink(LocalLink):
    """Its shell never comes to an end."""

    def stream(self, words: Sequence[str]) -> Iterator[bytes]:
        while True:
            yield b"x86_64\n" * 500


def test_a_shell_that_prints_without_end_says_no_machine(home: Path, cache: ContentCache) -> None:
    noisy = local_transport(home, cache, link=EndlessLink(home))
    with pytest.raises(DeviceTrouble, match="uname -m.* does not end") as caught:
        noisy.sense()
    assert len(str(caught.value)) < 300
    noisy.close()
    long = local_transport(home, cache, link=LocalLink(home, machine="x" * 2000))
    with pytest.raises(DeviceTrouble, match="machine type"):
        long.sense()
    long.close()


def test_a_machine_word_is_found_behind_a_greeting(home: Path, cache: ContentCache) -> None:
    greeting = LocalLink(home, machine=f"Welcome, friend!\r\n\r\n{os.uname().machine}\r")
    spoken = local_transport(home, cache, link=greeting, agent=partial(agent_for, cache=cache))
    assert spoken.open().architecture == os.uname().machine
    spoken.close()
