"""A farm's history: its scheduler keeps it, and the runs of all its users start from it and add to it.

Both sides check what the other one sends as they check a stranger's file.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import io
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from halide_autotune.autotune_loop.farm.address import FarmAddress
from halide_autotune.autotune_loop.history.exchange import Nests, pack_schedules, taken_apart, unpack_schedules
from halide_autotune.autotune_loop.history.history import History, NestLimits
from halide_autotune.autotune_loop.history.known_schedule import KnownSchedule
from halide_autotune.autotune_loop.history.pipeline_identity import PipelineIdentity
from halide_autotune.targets.errors import FarmError, HistoryError

# What a run waits for its farm, which may be busy.
_PATIENCE_S = 30.0
# Of one question.
_MOST_SCHEDULES, _MOST_NESTS = 100, 10_000
_ANSWER, _REFUSED = "answer", "refused"


class ServedHistory:
    """Answers runs, on the scheduler's loop; the file is read and written in a thread.

    Args:
        history: the farm's.
        tell: a line for the log.
    """

    def __init__(self, history: History, tell: Callable[[str], None]) -> None:
        self._history, self._tell = history, tell

    @property
    def handlers(self) -> Mapping[str, Callable[..., Awaitable[dict[str, object]]]]:
        """What the scheduler is asked → what answers it."""
        return {"farm_history_best": self.best, "farm_history_nests": self.nests, "farm_history_add": self.add}

    async def best(self, pipeline: Sequence[str], place: Sequence[str], count: int) -> dict[str, object]:
        """See `History.best`."""

        def asked() -> object:
            identity, (target, device, clock) = PipelineIdentity(*map(str, pipeline)), map(str, place)
            found = self._history.best(identity, (target, device, clock), min(int(count), _MOST_SCHEDULES))
            return pack_schedules(found, {})

        return await self._answered(asked)

    async def nests(self, halide_target: str, threads: str, limits: Sequence[int]) -> dict[str, object]:
        """See `History.nests`."""

        def asked() -> object:
            pipelines, each, fewest = (min(int(number), _MOST_NESTS) for number in limits)
            groups = self._history.nests(str(halide_target), str(threads), NestLimits(pipelines, each, fewest))
            told = [[(base64.b64encode(nest).decode(), ms) for nest, ms in group] for group in groups]
            return json.dumps(told).encode()

        return await self._answered(asked)

    async def add(self, packed: bytes) -> dict[str, object]:
        """See `History.add`."""

        def asked() -> object:
            return self._history.add(*taken_apart(unpack_schedules(io.BytesIO(packed), "What a run has found")))

        return await self._answered(asked)

    async def _answered(self, asked: Callable[[], object]) -> dict[str, object]:
        """What is wrong with a question, or with the file, is the run's to know, and costs nobody else anything."""
        try:
            return {_ANSWER: await asyncio.to_thread(asked)}
        except (HistoryError, ArithmeticError, TypeError, ValueError) as error:
            self._tell(f"The history: {error}")
            return {_REFUSED: str(error)}


class NoHistory(ServedHistory):
    """A farm that keeps none: it knows nothing, and forgets what it is told."""

    def __init__(self) -> None:
        """Nothing is needed for that."""

    async def _answered(self, asked: Callable[[], object]) -> dict[str, object]:
        return {_ANSWER: None}


class FarmHistory:
    """The same history, as a run asks for it and adds to it: as `History`, over the farm's own connections.

    Every method raises HistoryError: the farm does not answer, or its history is damaged.

    Args:
        address: the farm's.
    """

    def __init__(self, address: FarmAddress) -> None:
        self._address = address

    def best(self, pipeline: PipelineIdentity, place: tuple[str, str, str], count: int) -> list[KnownSchedule]:
        """See `History.best`."""
        packed = self._ask(
            "farm_history_best", pipeline=[pipeline.at_any_size, pipeline.as_timed], place=[*place], count=count
        )
        if packed is None:
            return []
        return taken_apart(unpack_schedules(io.BytesIO(packed), "What the farm has found"))[0]

    def nests(self, halide_target: str, threads: str, limits: NestLimits) -> list[list[tuple[bytes, float]]]:
        """See `History.nests`."""
        asked = [limits.most_pipelines, limits.most_each, limits.fewest_each]
        told = self._ask("farm_history_nests", halide_target=halide_target, threads=threads, limits=asked)
        try:
            groups = json.loads(told or b"[]")
            return [[(base64.b64decode(nest, validate=True), _time_ms(ms)) for nest, ms in group] for group in groups]
        except (ValueError, TypeError, binascii.Error, RecursionError) as error:
            raise HistoryError(f"The farm's history answers with something else than loop nests ({error}).") from error

    def add(self, schedules: Iterable[KnownSchedule], nests: Nests = MappingProxyType({})) -> int:
        """See `History.add`."""
        added = self._ask("farm_history_add", packed=pack_schedules(schedules, nests))
        return added if isinstance(added, int) else 0

    def _ask(self, question: str, **asked: object) -> Any:
        # Imported here: Dask takes half a second, and a run that is not on a farm does not need it.
        from halide_autotune.autotune_loop.farm.client import farm_client

        try:
            with farm_client(self._address) as client:
                ask = getattr(client.scheduler, question)
                told = client.sync(ask, callback_timeout=_PATIENCE_S, **asked)
        except FarmError as error:
            raise HistoryError(f"The farm's history cannot be asked: {error.message}") from error
        except (OSError, TimeoutError, ValueError) as error:
            raise HistoryError(f"The farm's history does not answer ({type(error).__name__}).") from error
        if not isinstance(told, Mapping) or _REFUSED in told:
            why = told.get(_REFUSED) if isinstance(told, Mapping) else type(told).__name__
            raise HistoryError(f"The farm's history: {why}")
        return told.get(_ANSWER)


def _time_ms(told: object) -> float:
    """A finite time; raises ValueError for anything else."""
    if not isinstance(told, int | float) or not 0 < told < 1e12:
        raise ValueError(f"a time of {told!r}")
    return float(told)
