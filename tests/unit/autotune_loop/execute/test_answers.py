"""Answers come with the news that a task is done; what did not come is fetched."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dask import config as dask_config
from distributed import Client, SpecCluster, get_worker

from halide_autotune.autotune_loop.execute.answers import Answers, send_answer
from halide_autotune.autotune_loop.farm.quiet_dask import QUIET_CONFIG, PortlessScheduler, PortlessWorker


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    options = {"protocol": "inproc://", "dashboard": False}
    with dask_config.set({**QUIET_CONFIG, "temporary-directory": str(tmp_path)}), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with (
            SpecCluster(
                workers={"one": {"cls": PortlessWorker, "options": options}},
                scheduler={"cls": PortlessScheduler, "options": options},
            ) as cluster,
            Client(cluster, set_as_default=False) as made,
        ):
            yield made


def _send(client_id: str, sent: bytes, returned: bytes) -> bytes:
    send_answer(get_worker(), client_id, sent)
    return returned


def test_a_small_answer_comes_by_itself_and_others_are_fetched(client: Client) -> None:
    answers = Answers(client)

    def asked(task: Callable[..., Any], *arguments: object) -> object:
        submitted = client.submit(task, *arguments, pure=False)
        waiting = asyncio.run_coroutine_threadsafe(answers.of(submitted), client.loop.asyncio_loop)
        return waiting.result(120)

    assert asked(_send, client.id, b"took 0.5 s", b"fetched") == b"took 0.5 s"
    assert asked(_send, client.id, b"large" * 10_000, b"fetched") == b"fetched"
    assert asked(abs, -1) == 1
    with pytest.raises(ZeroDivisionError):
        asked(divmod, 1, 0)
    # A scheduler that is started again knows nothing of who wants which answers.
    client.unsubscribe_topic(client.id)
    assert asked(_send, client.id, b"sent", b"fetched") == b"fetched"
    assert asked(_send, client.id, b"sent", b"fetched") == b"sent"
    answers.close()
