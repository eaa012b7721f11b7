"""The agent built for other machines than this one."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from halide_autotune.devices.agent.program import AgentProgram, agent_for
from halide_autotune.devices.agent.session import AgentSession
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.health.probe import probe_device
from halide_autotune.targets.process.content_cache import ContentCache
from tests.contract.local_device import local_device, local_transport
from tests.contract.local_link import LocalLink


@pytest.mark.parametrize("machine", ["sparc64", "", "x86_64\n", "../x86_64", "\x1b[31m" + "x" * 500])
def test_an_unknown_machine_has_no_agent(cache: ContentCache, machine: str) -> None:
    with pytest.raises(DeviceTrouble, match="no agent") as caught:
        agent_for(machine, cache)
    assert caught.value.kind is TroubleKind.BROKEN and "aarch64" in caught.value.next_step
    assert len(str(caught.value)) < 300 and "\x1b" not in str(caught.value)


@pytest.mark.toolchain
def test_the_agent_is_one_static_file_and_built_once(cache: ContentCache) -> None:
    first = agent_for("x86_64", cache)
    written = first.path.stat().st_mtime_ns
    content = first.path.read_bytes()
    assert hashlib.sha256(content).hexdigest() == first.sha256
    assert b"/lib/ld-" not in content and b".interp" not in content and len(content) < 2**20
    assert agent_for("x86_64", cache) == first and first.path.stat().st_mtime_ns == written


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("qemu-aarch64"), reason="qemu-aarch64 is not installed")
def test_the_agent_works_on_an_emulated_arm64(home: Path, cache: ContentCache, tmp_path: Path) -> None:
    def build(machine: str) -> AgentProgram:
        return agent_for(machine, cache)

    link = LocalLink(home, ("qemu-aarch64",), machine="aarch64")
    probe = probe_device(AgentSession(link, local_device(home), build))
    assert probe.machine == "aarch64" and probe.emulated
    transport = local_transport(home, cache, link=link, agent=build)
    opened = transport.open()
    assert opened.architecture == "aarch64"
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho $1; exit 4\n")
    program.chmod(0o700)
    transport.push(program, "program")
    outcome = transport.run("program", ["a b"], 60.0)
    assert (outcome.exit_code, outcome.output) == (4, "a b\n") and len(outcome.canary_s) == 2
    (tmp_path / "sleeper").write_text("#!/bin/sh\nsetsid sleep 1000 & sleep 1000\n")
    (tmp_path / "sleeper").chmod(0o700)
    transport.push(tmp_path / "sleeper", "sleeper")
    assert transport.run("sleeper", [], 1.0).timed_out
    assert transport.canary() > 0
    transport.close()
    assert not list((home / "work").glob("s-*"))
