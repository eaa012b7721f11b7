"""A task's answer comes to its run with the news that it is done; only a large one is fetched."""

from __future__ import annotations

from typing import Any

from distributed import Client, Worker
from distributed import Future as DaskFuture

# Dask's scheduler keeps the last hundred of a run in mind.
_MOST_SENT_BYTES = 2**15


def send_answer(worker: Worker, client_id: str, answer: bytes) -> None:
    """Called by a task before it returns `answer`: sends it to the client, unless it is large.

    It travels in the same messages as the task's state. Fetching it costs the scheduler two requests more, which is
    most of what it has to do for a measurement.
    """
    if len(answer) <= _MOST_SENT_BYTES:
        worker.log_event(client_id, [worker.get_current_task(), answer])


class Answers:
    """What has come for the tasks of a client; used on its loop."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._sent: dict[str, bytes] = {}
        self._subscribe()

    def _subscribe(self) -> None:
        # Dask itself forgets what is under a client's id with the client.
        self._client.subscribe_topic(self._client.id, self._take)

    def close(self) -> None:
        """Nothing comes any more."""
        self._client.unsubscribe_topic(self._client.id)

    def _take(self, event: tuple[float, Any]) -> None:
        _, message = event
        if not isinstance(message, list | tuple) or len(message) != 2:
            return
        key, answer = message
        if isinstance(key, str) and isinstance(answer, bytes) and key in self._client.futures:
            self._sent[key] = answer

    async def of(self, submitted: DaskFuture[Any]) -> bytes:
        """Wait for a task's end; returns what it gave.

        Raises:
            Exception: what the task has raised; or Dask, because its worker or the scheduler is gone.
        """
        state = self._client.futures.get(submitted.key)
        if state is not None:
            await state.wait()
        content = self._sent.pop(submitted.key, None)
        if content is not None:
            return content
        try:
            fetched: bytes = await self._client.gather(submitted)
            return fetched
        finally:
            # A scheduler that was started again knows of no subscriptions.
            self._subscribe()
