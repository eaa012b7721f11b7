"""What several folders of these tests use."""

from __future__ import annotations

import warnings

import pytest

from halide_autotune.autotune_loop import deadline
from tests.fake_time import FakeTime


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    """The time that every deadline sees."""
    made = FakeTime()
    monkeypatch.setattr(deadline, "time", made)
    return made


@pytest.fixture(scope="session")
def tensorflow_ready() -> None:
    """Import TensorFlow with its own warnings kept out of the tests."""
    from halide_autotune.autotune_loop.cost_model.process.model_worker import limit_threads

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        limit_threads(1)
