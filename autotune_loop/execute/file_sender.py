"""Sends members what they lack of a run: its ticket and files, each once to a member."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from distributed import Client, Worker

from autotune_loop.execute.order import Wanting
from autotune_loop.execute.run_files import FileKey, FilePart, key_of
from autotune_loop.execute.run_ticket import RunTicket, run_ticket
from autotune_loop.execute.worker_plugin import member_of
from autotune_loop.specification.run_context import RunContext
from targets.errors import FarmError

_PART_BYTES = 4 * 2**20
# A member that takes longer for one piece has stopped.
_PART_LIMIT_S = 60.0


class Courier:
    """Everything runs on the client's loop.

    Raises:
        FarmError: the generator or an input file cannot be read.
    """

    def __init__(self, client: Client, run_id: str, context: RunContext) -> None:
        self._client = client
        self._run_id = run_id
        generators = [key_of(task.reference.file) for task in context.tasks]
        inputs = {name: key_of(path) for name, path in context.inputs.files.items()}
        self._ticket = run_ticket(run_id, context, generators, inputs)
        self._kept = {key: task.reference.file for key, task in zip(generators, context.tasks, strict=True)}
        self._kept.update({key: context.inputs.files[name] for name, key in inputs.items()})
        self._interrupting = False
        self._under_way: dict[tuple[str, FileKey | None], asyncio.Future[None]] = {}

    async def deliver(self, wanting: Wanting, files: Mapping[Path, FileKey]) -> None:
        """Send a member what it lacks; when that is on its way already, wait for it.

        Args:
            files: those of the task that it lacks something for.

        Raises:
            FarmError: the file is not there any more, or did not arrive.
            OSError, TimeoutError: the member is gone.
        """
        what = (wanting.member_id, wanting.key)
        under_way = self._under_way.get(what)
        if under_way is None:
            under_way = self._under_way[what] = asyncio.ensure_future(self._send(wanting, files))
            under_way.add_done_callback(lambda done: self._under_way.pop(what, None))
        await asyncio.shield(under_way)

    async def _send(self, wanting: Wanting, files: Mapping[Path, FileKey]) -> None:
        if wanting.key is None:
            await self._call(wanting.worker, _receive_ticket, self._ticket)
            return
        paths = {key: path for path, key in files.items()} | self._kept
        path = paths.get(wanting.key)
        if path is None:
            raise FarmError(f"The file {wanting.key.name} is asked for by a member, and nobody knows it.")
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                executable, offset = bool(status.st_mode & stat.S_IXUSR), 0
                while True:
                    content = await asyncio.to_thread(file.read, _PART_BYTES)
                    part = FilePart(wanting.key, offset, status.st_size, executable, content)
                    await self._call(wanting.worker, _receive_part, self._run_id, part)
                    offset += len(content)
                    if offset >= status.st_size or not content:
                        return
        except FileNotFoundError:
            raise FarmError(f"{path} is gone.") from None

    async def _call(self, worker: str, function: Any, *arguments: Any) -> None:
        await asyncio.wait_for(self._client.run(function, *arguments, workers=[worker]), _PART_LIMIT_S)

    async def interrupt(self, workers_by_member: Mapping[str, str]) -> None:
        """Kill what the run's tasks have started, on every member.

        Args:
            workers_by_member: the address of one worker of each member.
        """
        if self._interrupting:
            return  # asked again and again while a run ends; one at a time is enough
        self._interrupting = True
        try:
            workers = list(workers_by_member.values())
            await self._client.run(_interrupt, self._run_id, workers=workers, on_error="ignore")
        finally:
            self._interrupting = False

    async def end_run(self, workers_by_member: Mapping[str, str]) -> None:
        """Have every member close what it has open for the run, and wait for that."""
        await self._client.run(_end_run, self._run_id, workers=list(workers_by_member.values()), on_error="ignore")


# These run on members, on the loop of one of their workers.


def _receive_ticket(ticket: RunTicket, dask_worker: Worker) -> None:
    member_of(dask_worker).receive_ticket(ticket)


def _receive_part(run_id: str, part: FilePart, dask_worker: Worker) -> None:
    member_of(dask_worker).receive_file(run_id, part)


def _interrupt(run_id: str, dask_worker: Worker) -> None:
    member_of(dask_worker).interrupt(run_id)


async def _end_run(run_id: str, dask_worker: Worker) -> None:
    await asyncio.to_thread(member_of(dask_worker).end_run, run_id)
