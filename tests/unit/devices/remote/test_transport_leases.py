"""The transport keeps its lease, says when it was lost, and respects one that was taken by hand."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.lease.token import LeaseToken
from halide_autotune.devices.remote import session_files, shared_connection
from halide_autotune.targets.process.content_cache import ContentCache
from tests.contract.local_device import leases_of, local_transport, release_lease_of, take_lease_of
from tests.contract.local_link import LocalLink
from tests.process_state import await_other_text

# The first one builds the agent, and the C library for it.
pytestmark = pytest.mark.toolchain

TIME_S = 60.0


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


@pytest.mark.parametrize("is_by_hand", [False, True])
def test_the_lease_lasts_for_a_slow_transfer(
    home: Path, cache: ContentCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_by_hand: bool
) -> None:
    """Nothing renews it while a file is sent or fetched."""
    link = LocalLink(home)
    token = LeaseToken("c" * 32, time.time() + 50) if is_by_hand else None
    sender = local_transport(home, cache, link=link, taken_by_hand=lambda: token)
    looking = local_transport(home, cache)
    sender.open()
    monkeypatch.setattr(session_files, "_SLOWEST_BYTES_PER_S", 10)
    left_s = list[float]()

    def look(content: bytes) -> bytes:
        left_s.extend(lease.expires_in_s for lease in leases_of(looking))
        return content

    link.damage_put = [look]
    (tmp_path / "large").write_bytes(bytes(5000))
    sender.push(tmp_path / "large", "large")
    sender.pull("large", tmp_path / "back")
    (one,) = left_s
    assert one <= 50 if is_by_hand else 400 < one <= 500
    sender.close()
    assert is_by_hand or leases_of(looking) == (), "it is given back all the same"
    looking.close()


def test_a_lease_taken_by_force_is_told_by_the_next_operation(
    home: Path, cache: ContentCache, link: LocalLink, program: Path
) -> None:
    robbed = local_transport(home, cache, link=link, lease_ttl_s=0.9)
    robbed.push(program, "p")
    robber = local_transport(home, cache, owner="robber@there")
    take_lease_of(robber, force=True)
    before = link.commands.count("lease-take")
    while link.commands.count("lease-take") < before + 2:
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
