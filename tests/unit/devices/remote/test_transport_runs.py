"""Programs run over the transport: stopped ones, and replies that are damaged, cut short or never come."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from halide_autotune.devices.agent import session as agent_session
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.remote.transport import AgentTransport
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.process.stop_signal import StopSignal
from tests.contract.local_link import LocalLink

# The first one builds the agent, and the C library for it.
pytestmark = pytest.mark.toolchain

TIME_S = 60.0


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


def test_an_argument_with_a_nul_is_wrong_usage(transport: AgentTransport, program: Path) -> None:
    transport.push(program, "p")
    with pytest.raises(UsageError, match="NUL"):
        transport.run("p", ["a\0b"], TIME_S)
