"""What Dask says that is no news to anybody."""

from __future__ import annotations

import asyncio
import gc
import logging

import pytest

from halide_autotune.autotune_loop.farm.quiet_dask import quiet_logs


def test_a_wait_that_nobody_hears_the_end_of_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    def leave(error: Exception) -> None:
        async def leave_it() -> None:
            asyncio.get_running_loop().create_future().set_exception(error)
            gc.collect()

        asyncio.run(leave_it())

    quiet_logs()
    with caplog.at_level(logging.ERROR, "asyncio"):
        leave(TimeoutError("Timeout"))
        assert caplog.messages == []
        leave(ValueError("something else"))
        assert "Future exception was never retrieved" in caplog.text and "something else" in caplog.text


def test_a_client_that_leaves_first_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    quiet_logs()
    logging.getLogger("distributed.scheduler").critical("Closed comm while trying to write", exc_info=True)
    assert caplog.messages == []
