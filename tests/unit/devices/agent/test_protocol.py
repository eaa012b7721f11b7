"""Requests and replies of the device agent, as bytes."""

from __future__ import annotations

import base64
import itertools
import json
import zlib
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.devices.agent.protocol import (
    AgentEvent,
    AliveEvent,
    ErrorEvent,
    OutputEvent,
    Printable,
    ReplyParser,
    ResultEvent,
    encode_request,
    read_reply,
    request_word,
)
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.targets.errors import UsageError

NONCE = "0123456789abcdef"
OTHER_NONCE = "fedcba9876543210"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
fields = st.dictionaries(st.text().filter(lambda key: key not in ("event", "kind", "message")), json_values, max_size=4)
events: st.SearchStrategy[AgentEvent] = st.one_of(
    st.just(AliveEvent()),
    st.builds(OutputEvent, st.binary(max_size=3000)),
    st.builds(ResultEvent, fields),
    st.builds(
        ErrorEvent, st.sampled_from(["usage", "lease", "full", "io", "exec", "checksum"]), st.just("No."), fields
    ),
)
noise = st.binary(max_size=300).filter(lambda data: b"@" not in data)


def as_object(event: AgentEvent) -> dict[str, object]:
    if isinstance(event, AliveEvent):
        return {"event": "alive"}
    if isinstance(event, OutputEvent):
        return {"event": "output", "data": base64.b64encode(event.data).decode()}
    if isinstance(event, ResultEvent):
        return {"event": "result", **event.fields}
    return {"event": "error", "kind": event.kind, "message": event.message, **event.fields}


def line(content: object, nonce: str = NONCE, end: bytes = b"\n") -> bytes:
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return b"@%s %08x %s%s" % (nonce.encode(), zlib.crc32(text), text, end)


def feed_in_pieces(parser: ReplyParser, data: bytes, cuts: list[int]) -> list[AgentEvent]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    found: list[AgentEvent] = []
    for start, end in itertools.pairwise(places):
        found += parser.feed(data[start:end])
    return found


@given(
    st.lists(events, max_size=6), st.lists(noise, max_size=7), st.lists(st.integers(0, 10**6), max_size=9), st.data()
)
def test_events_come_out_of_any_noise_cut_anywhere(
    sent: list[AgentEvent], around: list[bytes], cuts: list[int], data: st.DataObject
) -> None:
    stream = b""
    for event in sent:
        before = around.pop() if around else b""
        stream += before + line(as_object(event), end=data.draw(st.sampled_from([b"\n", b"\r\n", b"\r\r\n"])))
    parser = ReplyParser(NONCE)
    assert feed_in_pieces(parser, stream, cuts) == sent
    assert parser.damaged_lines == 0


@given(st.lists(events, min_size=1, max_size=4), st.lists(st.integers(0, 10**6), min_size=1, max_size=6), st.data())
def test_flipped_bits_lose_events_and_never_change_one(
    sent: list[AgentEvent], cuts: list[int], data: st.DataObject
) -> None:
    stream = bytearray(b"".join(line(as_object(event)) for event in sent))
    for bit in data.draw(st.lists(st.integers(0, len(stream) * 8 - 1), min_size=1, max_size=3)):
        stream[bit // 8] ^= 1 << bit % 8
    found = feed_in_pieces(ReplyParser(NONCE), bytes(stream), cuts)
    left = iter(sent)
    assert all(any(event == candidate for candidate in left) for event in found)


@given(st.binary(max_size=2000), st.lists(st.integers(0, 10**6), max_size=5))
def test_random_bytes_are_no_events(data: bytes, cuts: list[int]) -> None:
    assert feed_in_pieces(ReplyParser(NONCE), data, cuts) == []


@pytest.mark.parametrize(
    "content",
    [
        b"{}",
        b'{"event":"alive","extra":NaN}',
        b'{"event":"output","data":7}',
        b'{"event":"output","data":"a"}',
        b'{"event":"output","data":"\xc3\xa9"}',
        b'{"event":"error","kind":"other","message":""}',
        b'{"event":"error","kind":"io"}',
        b'{"event":["result"]}',
        b'{"event":"result"} {}',
        b'{"event":"result","x":Infinity}',
        b'{"event":"result","x":"\xff"}',
        b"{" + b'"a":[' * 100_000 + b"}",
    ],
)
def test_a_sound_line_with_a_wrong_object_is_damage(content: bytes) -> None:
    parser = ReplyParser(NONCE)
    assert parser.feed(line(content)) == []
    assert parser.damaged_lines == 1


def test_another_requests_reply_is_damage() -> None:
    parser = ReplyParser(NONCE)
    assert parser.feed(line({"event": "result"}, OTHER_NONCE)) == []
    assert parser.damaged_lines == 1
    assert parser.feed(line({"event": "result"})) == [ResultEvent({})]


def test_an_event_behind_a_prompt_counts_and_the_prompt_is_noise() -> None:
    parser = ReplyParser(NONCE)
    assert parser.feed(b"$ " + line({"event": "result"})) == [ResultEvent({})]
    assert parser.noise == "$"


def test_endless_noise_is_kept_short_and_what_follows_is_read() -> None:
    parser = ReplyParser(NONCE)
    for _ in range(40):
        assert parser.feed(b"x" * 100_000) == []
    assert len(parser.noise) <= 4096
    assert parser.feed(b"\n" + line({"event": "result"})) == [ResultEvent({})]


def test_noise_is_shown_without_control_characters() -> None:
    parser = ReplyParser(NONCE)
    parser.feed(b"sh: \x1b[31magent\x07: not\x00found\r\n\xff")
    assert parser.noise == "sh: [31magent : not found �"


@given(st.lists(st.tuples(st.sampled_from(["arg", "env", "name"]), st.text().filter(lambda t: "\0" not in t))))
def test_a_request_holds_its_fields(pairs: list[tuple[str, str]]) -> None:
    request = encode_request(pairs, NONCE)
    word = request_word(request)
    assert word.isascii() and "=" not in word
    back = base64.urlsafe_b64decode(word + "=" * (-len(word) % 4))
    parts = back.decode("utf-8", "surrogateescape").split("\0")
    assert parts[-1] == ""
    assert [tuple(part.split("=", 1)) for part in parts[:-1]] == [("nonce", NONCE), *pairs]


def test_what_no_program_can_be_given_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="NUL"):
        encode_request([("arg", "a\0b")], NONCE)
    with pytest.raises(UsageError, match="character"):
        encode_request([("arg", "\ud800")], NONCE)
    with pytest.raises(UsageError, match="at most 1048576"):
        encode_request([("arg", "x" * 2**20)], NONCE)
    assert encode_request([("arg", "\udcff")], NONCE).endswith(b"arg=\xff\0")


@pytest.mark.parametrize(("pair", "nonce"), [(("a b", ""), NONCE), (("", ""), NONCE), (("a", ""), "short")])
def test_malformed_keys_and_nonces_are_faults(pair: tuple[str, str], nonce: str) -> None:
    with pytest.raises(ValueError, match="no"):
        encode_request([pair], nonce)


@dataclass(frozen=True)
class Row:
    n: int


@dataclass(frozen=True)
class Message:
    n: int
    x: float
    t: Printable
    f: bool
    none: float | None
    missing_text: Printable | None
    rows: tuple[Row, ...]
    words: tuple[Printable, ...]


FIELDS = {
    "n": 3,
    "x": 1.5,
    "t": "a\x1bb",
    "f": True,
    "none": None,
    "missing_text": None,
    "rows": [{"n": 1, "further": 2}],
    "words": ["a"],
    "unknown": {},
}


def test_a_message_becomes_a_dataclass() -> None:
    found = read_reply(Message, FIELDS, "It")
    assert found == Message(3, 1.5, "a b", True, None, None, (Row(1),), ("a",))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("n", 1.5),
        ("n", True),
        ("n", None),
        ("x", True),
        ("x", None),
        ("x", 10**400),
        ("t", 3),
        ("f", 3),
        ("rows", ["a"]),
        ("rows", 3),
        ("words", [{"n": 1}]),
    ],
)
def test_a_wrong_field_is_named(key: str, value: object) -> None:
    with pytest.raises(DeviceTrouble, match=f"^It: .*{key}") as caught:
        read_reply(Message, FIELDS | {key: value}, "It")
    assert caught.value.kind is TroubleKind.PROTOCOL_ERROR


def test_a_missing_field_is_named() -> None:
    fields = dict(FIELDS)
    del fields["x"]
    with pytest.raises(DeviceTrouble, match="^It: .*'x'") as caught:
        read_reply(Message, fields, "It")
    assert caught.value.kind is TroubleKind.PROTOCOL_ERROR
