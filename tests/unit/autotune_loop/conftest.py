"""What several folders of these tests use."""

from __future__ import annotations

import pytest

from halide_autotune.autotune_loop import deadline
from tests.fake_time import FakeTime


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    """The time that every deadline sees."""
    made = FakeTime()
    monkeypatch.setattr(deadline, "time", made)
    return made
