"""Sends workers what they lack of a run: the run itself and files, each once to a worker."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from distributed import Client

from halide_autotune.autotune_loop.execute import worker_plugin
from halide_autotune.autotune_loop.execute.messages import FilePart, MissingInput, encode, encode_run
from halide_autotune.autotune_loop.execute.tasks.task import FileKey
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.targets.errors import FarmError

_PART_BYTES = 4 * 2**20
# A worker that takes longer for one piece has stopped.
_PART_LIMIT_S = 60.0


class FileSender:
    """Everything runs on the client's loop.

    Raises:
        FarmError: the generator or an input file cannot be read.
    """

    def __init__(self, client: Client, run_id: str, context: RunContext) -> None:
        self._client = client
        self._run_id = run_id
        self._run, self._run_files = encode_run(run_id, context)
        self._interrupting = False
        self._under_way: dict[tuple[str, FileKey | None], asyncio.Future[None]] = {}

    async def deliver(self, missing: MissingInput, files: Mapping[Path, FileKey]) -> None:
        """Send a worker what it lacks; when that is on its way already, wait for it.

        Args:
            files: those of the task that it lacks something for.

        Raises:
            FarmError: the file is not there any more, or did not arrive.
            OSError, TimeoutError: the worker is gone.
        """
        what = (missing.worker_id, missing.key)
        under_way = self._under_way.get(what)
        if under_way is None:
            under_way = self._under_way[what] = asyncio.ensure_future(self._send(missing, files))
            under_way.add_done_callback(lambda done: self._under_way.pop(what, None))
        await asyncio.shield(under_way)

    async def _send(self, missing: MissingInput, files: Mapping[Path, FileKey]) -> None:
        if missing.key is None:
            await self._call(missing.address, worker_plugin.receive_run, self._run)
            return
        paths = {key: path for path, key in files.items()} | self._run_files
        path = paths.get(missing.key)
        if path is None:
            raise FarmError(f"A worker has asked for the file {missing.key.name}, which does not belong to its task.")
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                executable, offset = bool(status.st_mode & stat.S_IXUSR), 0
                while True:
                    content = await asyncio.to_thread(file.read, _PART_BYTES)
                    part = FilePart(self._run_id, missing.key, offset, status.st_size, executable, content)
                    await self._call(missing.address, worker_plugin.receive_part, encode(part))
                    offset += len(content)
                    if offset >= status.st_size or not content:
                        return
        except FileNotFoundError:
            raise FarmError(f"The file {path} was deleted while a worker still needed it.") from None

    async def _call(self, worker: str, function: Any, *arguments: Any) -> None:
        await asyncio.wait_for(self._client.run(function, *arguments, workers=[worker]), _PART_LIMIT_S)

    async def interrupt(self, dask_workers: Mapping[str, str]) -> None:
        """Kill what the run's tasks have started, on every worker.

        Args:
            dask_workers: the address of one Dask worker of each worker.
        """
        if self._interrupting:
            return  # asked again and again while a run ends; one at a time is enough
        self._interrupting = True
        try:
            workers = list(dask_workers.values())
            await self._client.run(worker_plugin.interrupt, self._run_id, workers=workers, on_error="ignore")
        finally:
            self._interrupting = False

    async def end_run(self, dask_workers: Mapping[str, str]) -> None:
        """Have every worker close what it has open for the run, and wait for that."""
        await self._client.run(
            worker_plugin.end_run, self._run_id, workers=list(dask_workers.values()), on_error="ignore"
        )
