"""What tests of the device agent share: the agent on this machine, spoken to without a network."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from halide_autotune.devices.agent.program import agent_for
from halide_autotune.devices.agent.session import AgentSession
from halide_autotune.targets.process.content_cache import ContentCache
from tests.contract.local_device import local_device
from tests.contract.local_link import LocalLink


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home folder of the device's user; its leases are in `home/leases`."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def open_agent(home: Path, cache: ContentCache) -> Callable[[], AgentSession]:
    """Makes sessions with the agent, each with a link of its own."""
    return lambda: AgentSession(LocalLink(home), local_device(home), partial(agent_for, cache=cache))


@pytest.fixture
def agent(open_agent: Callable[[], AgentSession]) -> AgentSession:
    return open_agent()
