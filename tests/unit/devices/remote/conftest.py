"""A transport over the agent, on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from halide_autotune.devices.remote.transport import AgentTransport
from halide_autotune.targets.process.content_cache import ContentCache
from tests.contract.local_device import local_transport
from tests.contract.local_link import LocalLink


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
