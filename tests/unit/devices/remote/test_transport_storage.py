"""The transport over the agent, on a device whose storage is full."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.remote.transport import AgentTransport
from halide_autotune.targets.process.content_cache import ContentCache
from tests.contract.local_device import leases_of, local_transport
from tests.contract.local_link import LocalLink
from tests.small_file_system import small_file_system

# The first one builds the agent, and the C library for it.
pytestmark = pytest.mark.toolchain


@pytest.fixture
def small_storage(tmp_path: Path) -> Iterator[Path]:
    with small_file_system(tmp_path / "small", megabytes=2) as folder:
        yield folder


def test_full_storage_is_told_before_anything_is_sent(small_storage: Path, cache: ContentCache, tmp_path: Path) -> None:
    link = LocalLink(small_storage)
    small = local_transport(small_storage, cache, link=link)
    (tmp_path / "big").write_bytes(bytes(5 * 2**20))
    small.open()
    sent = len(link.puts)
    with pytest.raises(DeviceTrouble, match=r"5\.0 MiB, and 1\.\d MiB are free") as caught:
        small.push(tmp_path / "big", "big")
    assert caught.value.kind is TroubleKind.FULL and caught.value.next_step and len(link.puts) == sent
    small.close()


def test_storage_that_fills_up_while_a_file_is_sent(small_storage: Path, cache: ContentCache, tmp_path: Path) -> None:
    link = LocalLink(small_storage)
    small = local_transport(small_storage, cache, link=link)
    (tmp_path / "big").write_bytes(bytes(2**20))
    small.open()

    def fill(content: bytes) -> bytes:
        (small_storage / "filling").write_bytes(bytes(2**20 + 2**19))
        return content[: 2**18]

    link.damage_put = [fill]
    expected = "storage of bench is full|No space left on device. Free some storage"
    with pytest.raises(DeviceTrouble, match=expected) as caught:
        small.push(tmp_path / "big", "big")
    assert caught.value.kind is TroubleKind.FULL
    assert not list(small_storage.glob("work/s-*/.part-*"))
    small.close()


def test_storage_that_a_killed_predecessor_has_filled_is_freed(
    small_storage: Path, cache: ContentCache, tmp_path: Path
) -> None:
    (tmp_path / "big").write_bytes(os.urandom(2**20 + 2**18))
    (tmp_path / "little").write_bytes(b"little")
    token = "a" * 32
    killed = local_transport(small_storage, cache, own_token=token)
    killed.open()
    killed.push(tmp_path / "big", "big")
    # It never says goodbye. Another session of the one that follows fills nothing either.
    following = local_transport(small_storage, cache, own_token=token)
    following.push(tmp_path / "big", "big")
    shared = following.sharing()
    shared.push(tmp_path / "little", "little")
    assert sorted(path.name for path in small_storage.glob("work/s-*/[a-z]*")) == ["big", "little"]
    shared.close()
    following.close()
    killed.close()


def left_by_another(folder: Path, cache: ContentCache, tmp_path: Path, lease_ttl_s: float, slot: int = 0) -> Path:
    """What a user who was killed has left there: a large file in a session, whose lease ends after that time."""
    (tmp_path / "others").write_bytes(os.urandom(2**20 + 2**18))
    killed = local_transport(folder, cache, owner="ann@elsewhere", lease_ttl_s=lease_ttl_s, slot=slot)
    killed.open()
    killed.push(tmp_path / "others", "others")
    killed._connection.end_heartbeat(1.0)
    (left,) = folder.glob("work/s-*/others")
    return left


def await_end_of_lease(transport: AgentTransport) -> None:
    while leases_of(transport):
        time.sleep(0.05)


def test_a_full_storage_is_freed_of_what_is_nobodys(small_storage: Path, cache: ContentCache, tmp_path: Path) -> None:
    left = left_by_another(small_storage, cache, tmp_path, lease_ttl_s=0.3)
    old_agent = small_storage / "work" / "agent-0123456789abcdef"
    old_agent.write_bytes(bytes(1000))
    (small_storage / "work" / "agent-of-mine").write_bytes(b"not ours")
    (tmp_path / "big").write_bytes(os.urandom(2**20))
    transport = local_transport(small_storage, cache)
    await_end_of_lease(transport)
    transport.push(tmp_path / "big", "big")
    assert not left.parent.exists() and not old_agent.exists()
    assert (small_storage / "work" / "agent-of-mine").exists()
    transport.remove("big")
    transport.reclaim()
    transport.push(tmp_path / "big", "big")
    transport.close()


def test_a_full_storage_keeps_what_somebody_uses(small_storage: Path, cache: ContentCache, tmp_path: Path) -> None:
    left = left_by_another(small_storage, cache, tmp_path, lease_ttl_s=120.0, slot=1)
    old_agent = small_storage / "work" / "agent-0123456789abcdef"
    old_agent.write_bytes(bytes(1000))
    strangers = small_storage / "work" / "s-0123456789abcdef"
    strangers.mkdir()
    (tmp_path / "big").write_bytes(os.urandom(2**20))
    (tmp_path / "little").write_bytes(b"little")
    transport = local_transport(small_storage, cache)
    with pytest.raises(DeviceTrouble) as caught:
        transport.push(tmp_path / "big", "big")
    assert caught.value.kind is TroubleKind.FULL
    assert left.exists() and old_agent.exists() and strangers.exists()
    transport.push(tmp_path / "little", "little")
    transport.close()


def test_sessions_under_other_leases_are_kept(small_storage: Path, cache: ContentCache, tmp_path: Path) -> None:
    left = left_by_another(small_storage, cache, tmp_path, lease_ttl_s=120.0)
    elsewhere = local_transport(small_storage, cache, lease_folder=str(tmp_path / "other leases"))
    elsewhere.open()
    elsewhere.reclaim()
    assert left.exists()
    elsewhere.close()


def test_the_last_one_deletes_what_others_of_its_connection_could_not(tmp_path: Path, cache: ContentCache) -> None:
    (tmp_path / "little").write_bytes(b"little")
    link = LocalLink(tmp_path / "home")
    first = local_transport(tmp_path / "home", cache, link=link)
    first.push(tmp_path / "little", "little")
    second = first.sharing()
    second.push(tmp_path / "little", "little")
    strangers = tmp_path / "home" / "work" / "s-0123456789abcdef"
    strangers.mkdir()
    ask = second._session.ask

    def unreachable(*asked: Any, **limits: Any) -> Any:
        raise DeviceTrouble(TroubleKind.LOST, "The device is away.")

    second._session.ask = unreachable  # type: ignore[method-assign]  # the device is away
    second.close()
    second._session.ask = ask  # type: ignore[method-assign]  # it is back
    assert len(list(strangers.parent.glob("s-*/little"))) == 2
    first.close()
    assert list(strangers.parent.glob("s-*")) == [strangers]
