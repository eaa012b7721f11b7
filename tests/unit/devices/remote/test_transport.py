"""The transport over the agent: connections that fail, files that are damaged, leases that are lost."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from halide_autotune.devices.agent import session as agent_session
from halide_autotune.devices.agent.program import AgentProgram, agent_for
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.lease.token import LeaseToken
from halide_autotune.devices.remote import shared_connection
from halide_autotune.devices.remote.transport import AgentTransport
from halide_autotune.targets.errors import DeviceError, UsageError
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.process.stop_signal import StopSignal
from tests.contract.local_device import leases_of, local_transport, release_lease_of, take_lease_of
from tests.contract.local_link import LocalLink
from tests.process_state import await_other_text

# The first one builds the agent, and the C library for it.
pytestmark = [pytest.mark.toolchain, pytest.mark.timeout(900)]

TIME_S = 60.0


def lost(kind: TroubleKind = TroubleKind.LOST) -> DeviceTrouble:
    return DeviceTrouble(kind, "The cable is out.")


def flip(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :]


@pytest.fixture
def link(home: Path) -> LocalLink:
    return LocalLink(home)


@pytest.fixture
def transport(home: Path, cache: ContentCache, link: LocalLink) -> Iterator[AgentTransport]:
    opened = local_transport(home, cache, link=link)
    yield opened
    opened.close()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A shell script that evaluates its first argument."""
    path = tmp_path / "program"
    path.write_text('#!/bin/sh\neval "$1"\n')
    path.chmod(0o755)
    return path


def commands(link: LocalLink) -> list[str]:
    return [words[1] for words in link.streams]


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
    assert "settle" in commands(link) and "settle" not in commands(second) and not second.puts


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
    assert commands(link).count("settle") == 2
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


def test_stopping_ends_the_run_and_the_transport_goes_on(transport: AgentTransport, program: Path) -> None:
    transport.push(program, "p")
    stop = StopSignal()
    timer = threading.Timer(0.5, stop.set)
    timer.start()
    outcome = transport.run("p", ["sleep 1000"], TIME_S, stop)
    timer.join()
    assert outcome.stopped and outcome.exit_code < 0 and not outcome.timed_out
    outcome = transport.run("p", ["kill -SEGV $$"], TIME_S)
    assert outcome.exit_code == -11 and not outcome.stopped
    assert len(outcome.canary_s) == 2 and outcome.boot == transport.open().boot


def test_a_garbled_reply_is_no_result(transport: AgentTransport, link: LocalLink, program: Path) -> None:
    transport.push(program, "p")
    link.damage_stream = lambda data: data.replace(b'"result"', b'"resulT"')
    with pytest.raises(DeviceTrouble, match="damaged on the way") as caught:
        transport.run("p", ["true"], TIME_S)
    assert caught.value.kind is TroubleKind.PROTOCOL_ERROR
    link.damage_stream = None
    assert transport.run("p", ["exit 2"], TIME_S).exit_code == 2


def test_a_reply_that_stops_short_is_a_lost_connection(
    transport: AgentTransport, link: LocalLink, program: Path
) -> None:
    transport.push(program, "p")
    link.damage_stream = lambda data: b"".join(line for line in data.splitlines(True) if b'"alive"' in line)
    with pytest.raises(DeviceTrouble, match="connection to bench was lost") as caught:
        transport.run("p", ["true"], TIME_S)
    assert caught.value.kind is TroubleKind.LOST
    link.damage_stream = None


@pytest.mark.slow
def test_a_silent_device_is_given_up(transport: AgentTransport, link: LocalLink, program: Path) -> None:
    transport.push(program, "p")
    link.damage_stream = lambda data: b""
    with pytest.raises(DeviceTrouble, match="silent for 10 s") as caught:
        transport.run("p", ["sleep 1000"], TIME_S)
    assert caught.value.kind is TroubleKind.TIMEOUT
    link.damage_stream = None


def test_a_process_that_was_stopped_does_not_take_the_device_for_silent(
    transport: AgentTransport, link: LocalLink, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped_s = 0.0

    def stop_for_a_while(data: bytes) -> bytes:
        nonlocal stopped_s
        if b'"alive"' in data and not stopped_s:
            stopped_s = 30.0
            return b""
        return data

    transport.push(program, "p")
    monkeypatch.setattr(agent_session, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + stopped_s))
    link.damage_stream = stop_for_a_while
    assert transport.run("p", ["sleep 3; echo done"], TIME_S).output == "done\n" and stopped_s
    link.damage_stream = None


def test_the_heartbeat_keeps_the_lease(home: Path, cache: ContentCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_connection, "_BEATS_PER_LEASE", 1000)
    kept = local_transport(home, cache)
    kept.open()
    lease = home / "leases" / "slot-0"
    for _ in range(2):
        before = lease.read_text()
        await_other_text(lease, before)
    other = local_transport(home, cache)
    with pytest.raises(DeviceTrouble, match="leased by"):
        other.open()
    kept.close()
    other.open()
    other.close()


def test_a_lease_taken_by_force_is_told_by_the_next_operation(
    home: Path, cache: ContentCache, link: LocalLink, program: Path
) -> None:
    robbed = local_transport(home, cache, link=link, lease_ttl_s=0.9)
    robbed.push(program, "p")
    robber = local_transport(home, cache, owner="robber@there")
    take_lease_of(robber, force=True)
    before = commands(link).count("lease-take")
    while commands(link).count("lease-take") < before + 2:
        time.sleep(0.05)
    for _ in range(2):
        with pytest.raises(DeviceTrouble, match="leased by robber@there") as caught:
            robbed.run("p", ["true"], TIME_S)
        assert caught.value.kind is TroubleKind.LEASED
    robbed.close()
    assert release_lease_of(robber)
    robber.close()


def test_a_lease_that_was_lost_and_is_free_again_is_told_once(
    home: Path, cache: ContentCache, link: LocalLink, program: Path
) -> None:
    """Somebody else may have used the device meanwhile, which whoever times there must know."""
    robbed = local_transport(home, cache, link=link, lease_ttl_s=0.9)
    robbed.push(program, "p")
    robber = local_transport(home, cache, owner="robber@there")
    take_lease_of(robber, force=True)
    while robbed._connection.lost_lease is None:  # the heartbeat finds it
        time.sleep(0.05)
    assert release_lease_of(robber)
    robber.close()
    with pytest.raises(DeviceTrouble, match="leased by robber@there"):
        robbed.run("p", ["true"], TIME_S)
    assert robbed.run("p", ["true"], TIME_S).succeeded
    robbed.close()


class HandLease:
    """A lease that a user has taken by hand, as the device has it and as the user's tokens say."""

    def __init__(self, home: Path, cache: ContentCache, ttl_s: float) -> None:
        self.person = local_transport(home, cache, lease_ttl_s=ttl_s)
        self.ends_unix_s = time.time() + ttl_s
        self.taken = take_lease_of(self.person)

    def __call__(self) -> LeaseToken:
        return LeaseToken(self.person._connection.own.token, self.ends_unix_s)


def test_a_lease_taken_by_hand_outlives_the_transport(home: Path, cache: ContentCache) -> None:
    hand = HandLease(home, cache, ttl_s=3600)
    assert 3590 < hand.taken.expires_in_s <= 3600
    session = local_transport(home, cache, taken_by_hand=hand)
    session.open()
    session.close()
    (lease,) = leases_of(hand.person)
    assert lease.expires_in_s > 3000
    assert release_lease_of(hand.person)
    hand.person.close()


def test_a_run_does_not_keep_a_lease_that_was_taken_by_hand(home: Path, cache: ContentCache, program: Path) -> None:
    hand = HandLease(home, cache, ttl_s=60)
    session = local_transport(home, cache, taken_by_hand=hand, lease_ttl_s=3600)
    session.push(program, "p")
    (lease,) = leases_of(session)
    assert lease.expires_in_s <= 60, "the run asks for an hour"
    hand.ends_unix_s = 0.0
    session.push(program, "q")
    (lease,) = leases_of(session)
    assert lease.expires_in_s > 60 and lease.since_s < hand.taken.expires_in_s, "its own has followed"
    session.run("q", ["true"], TIME_S)
    session.close()
    assert leases_of(hand.person) == ()
    hand.person.close()


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


def test_an_argument_with_a_nul_is_wrong_usage(transport: AgentTransport, program: Path) -> None:
    transport.push(program, "p")
    with pytest.raises(UsageError, match="NUL"):
        transport.run("p", ["a\0b"], TIME_S)


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
