"""Files that are sent compressed are what they were; what is damaged or hostile is refused."""

from __future__ import annotations

import hashlib
import random
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from halide_autotune.devices.agent.session import AgentError, AgentSession
from halide_autotune.targets.process.content_cache import ContentCache
from tests.contract.local_device import local_transport
from tests.contract.local_link import LocalLink

PART = ".part-00ff"


def packed(content: bytes, level: int, strategy: int) -> bytes:
    packer = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS, 8, strategy)
    return packer.compress(content) + packer.flush()


def accept(agent: AgentSession, home: Path, data: bytes, content: bytes, size_bytes: int | None = None) -> bytes:
    """What the agent makes of a part; AgentError when it refuses."""
    agent.ask("open", [("session", "5e55"), *lease(home)])
    (home / "work" / "s-5e55" / PART).write_bytes(data)
    size_bytes = len(content) if size_bytes is None else size_bytes
    fields = [("session", "5e55"), ("part", PART), ("name", "data"), ("executable", "0")]
    fields += [("sha256", hashlib.sha256(content).hexdigest()), ("packed_from", str(size_bytes))]
    agent.ask("accept", fields)
    return (home / "work" / "s-5e55" / "data").read_bytes()


def lease(home: Path) -> list[tuple[str, str]]:
    fields = {"lease_folder": str(home / "leases"), "slot": "0", "token": "ab" * 16, "owner": "me", "ttl_s": "60"}
    return list(fields.items())


CONTENTS = {
    "empty": b"",
    "one byte": b"x",
    "zeros": bytes(200_000),
    "no pattern": random.Random(1).randbytes(100_000),
    "text": b"the quick brown fox jumps over the lazy dog. " * 3_000,
    "far repeats": random.Random(2).randbytes(32_768) * 3,
    "a program": Path("/bin/sh").read_bytes(),
}


@pytest.mark.parametrize("name", list(CONTENTS))
@pytest.mark.parametrize("level", [0, 1, 6, 9])
@pytest.mark.parametrize("strategy", [zlib.Z_DEFAULT_STRATEGY, zlib.Z_FIXED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE])
def test_everything_comes_back_as_it_was(agent: AgentSession, home: Path, name: str, level: int, strategy: int) -> None:
    content = CONTENTS[name]
    assert accept(agent, home, packed(content, level, strategy), content) == content


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_damage_is_found_out_and_nothing_is_left(agent: AgentSession, home: Path, data: st.DataObject) -> None:
    content = CONTENTS["text"][:5_000] + CONTENTS["no pattern"][:500]
    stream = bytearray(packed(content, data.draw(st.sampled_from([0, 6])), zlib.Z_DEFAULT_STRATEGY))
    kind = data.draw(st.sampled_from(["flip", "cut", "noise"]))
    if kind == "flip":
        stream[data.draw(st.integers(0, len(stream) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    elif kind == "cut":
        del stream[data.draw(st.integers(0, len(stream) - 1)) :]
    else:
        stream = bytearray(data.draw(st.binary(max_size=400)))
    try:
        # A flip may be in bits that mean nothing.
        assert accept(agent, home, bytes(stream), content) == content
    except AgentError as error:
        assert error.event.kind == "checksum"
        assert not list((home / "work" / "s-5e55").glob(".[!o]*")), "only whose folder it is"


def test_a_stream_that_grows_beyond_its_size_is_cut_off(agent: AgentSession, home: Path) -> None:
    bomb = packed(bytes(50_000_000), 9, zlib.Z_DEFAULT_STRATEGY)
    with pytest.raises(AgentError) as caught:
        accept(agent, home, bomb, b"small", size_bytes=1_000_000)
    assert caught.value.event.kind == "checksum"
    assert not list((home / "work" / "s-5e55").glob(".[!o]*")), "only whose folder it is"


@pytest.mark.toolchain
def test_large_files_travel_compressed(
    home: Path, tmp_path: Path, cache: ContentCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = LocalLink(home)
    sizes: list[int] = []
    put = link.put

    def watched(source: Path, path: str) -> None:
        sizes.append(source.stat().st_size)
        put(source, path)

    monkeypatch.setattr(link, "put", watched)
    transport = local_transport(home, cache, link=link)
    source = tmp_path / "data"
    source.write_bytes(CONTENTS["text"])
    transport.open()
    sizes.clear()
    transport.push(source, "data")
    transport.pull("data", tmp_path / "back")
    transport.close()
    assert (tmp_path / "back").read_bytes() == CONTENTS["text"]
    assert sum(sizes) < len(CONTENTS["text"]) / 10
