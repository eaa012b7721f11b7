"""Whatever a device says of a program that it ran, or of a file that it has, is kept if it can be true."""

from __future__ import annotations

import pytest
from hypothesis import given

from halide_autotune.devices.agent.protocol import ReplyParser, read_reply
from halide_autotune.devices.agent.session import AgentError, Reply, full_storage
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.remote.session_files import _Look
from halide_autotune.devices.remote.transport import OpenedDevice, _run_outcome, _RunResult
from tests.device_replies import ARRIVED, LOOK, OPENED, RAN, spoiled
from tests.unit.devices.agent.test_protocol import line


@given(spoiled(RAN))
def test_any_run_ended_somehow_or_is_trouble(reply: object) -> None:
    try:
        outcome = _run_outcome(Reply({}, b"\xff{}\x1b"), read_reply(_RunResult, reply, "It"))
    except DeviceTrouble as trouble:
        assert trouble.kind is TroubleKind.PROTOCOL_ERROR and trouble.message.isprintable()
        return
    assert -128 < outcome.exit_code < 256 and 0 <= outcome.duration_s <= 1e9
    assert all(1e-9 <= time_s <= 1e6 for time_s in outcome.canary_s) and outcome.boot.isprintable()


@given(spoiled(OPENED))
def test_any_opened_device_has_printable_names(reply: object) -> None:
    try:
        opened = read_reply(OpenedDevice, reply, "It")
    except DeviceTrouble:
        return
    assert opened.boot.isprintable() and opened.architecture.isprintable() and len(opened.boot) <= 300


@given(spoiled(LOOK))
def test_any_file_has_a_size_that_can_be_told(reply: object) -> None:
    try:
        look = read_reply(_Look, reply, "It")
    except DeviceTrouble:
        return
    assert look.file is None or (0 <= look.file.size_bytes < 2**63 and len(look.file.sha256) == 64)
    assert look.free_bytes >= -1


@given(spoiled(ARRIVED))
def test_any_complaint_about_a_file_is_trouble(reply: object) -> None:
    parser = ReplyParser("0123456789abcdef")
    fields = reply if isinstance(reply, dict) else {"event": reply}
    try:
        (event,) = parser.feed(line({**fields, "event": "error"}))
    except ValueError:
        assert parser.damaged_lines
        return
    error = AgentError("pi5", event)  # type: ignore[arg-type] # that is what the line says
    assert error.message.isprintable() and len(str(error)) < 1500
    try:
        full = full_storage("pi5", error, 4096)
    except DeviceTrouble as trouble:
        full = trouble
    assert full is None or full.message.isprintable()


@pytest.mark.parametrize("change", [{"exit_code": 10**30}, {"signal": -1}, {"duration_s": 1e300}, {"boot": {}}])
def test_an_end_that_no_program_has_is_named(change: dict[str, object]) -> None:
    with pytest.raises(DeviceTrouble, match=next(iter(change))):
        read_reply(_RunResult, RAN | change, "It")
