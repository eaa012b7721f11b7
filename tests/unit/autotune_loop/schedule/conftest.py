"""Headers as Halide 21's four autoschedulers wrote them, from small pipelines for x86-64, arm64 and CUDA."""

from __future__ import annotations

from pathlib import Path

import pytest

HEADERS = sorted((Path(__file__).parent / "headers").glob("*.schedule.h"))


@pytest.fixture(params=HEADERS, ids=lambda path: path.name.removesuffix(".schedule.h"))
def emitted(request: pytest.FixtureRequest) -> str:
    """The text of each header in turn."""
    path = request.param
    assert isinstance(path, Path)
    return path.read_text()
