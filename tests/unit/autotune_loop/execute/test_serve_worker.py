"""A worker whose scheduler is away."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from halide_autotune.autotune_loop.execute import serve_worker as serving
from halide_autotune.autotune_loop.execute.worker import FarmWorker
from halide_autotune.autotune_loop.farm.address import FarmAddress
from halide_autotune.targets.errors import FarmError
from halide_autotune.targets.process.stop_signal import StopSignal


class _LostWorker:
    """A Dask worker that loses its scheduler at once."""

    async def finished(self) -> None:
        return

    async def close(self, **given: object) -> None:
        return


def test_its_devices_are_given_back_while_the_scheduler_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, closed, joins = StopSignal(), list[str](), list[str]()

    async def join(farm_worker: FarmWorker, address: FarmAddress) -> list[Any]:
        joins.append("asked")
        if len(joins) > 1:
            raise FarmError("The scheduler does not answer.")
        return [_LostWorker()]

    def close_idle() -> None:
        closed.append("idle")
        if len(closed) == 2:
            stop.set()

    monkeypatch.setattr(serving, "_join", join)
    monkeypatch.setattr(serving, "_FIRST_PAUSE_S", 0.0)
    worker = SimpleNamespace(
        name="lab",
        devices={},
        build_slots=1,
        runs=[],
        workspace=SimpleNamespace(work_folder=tmp_path),
        close_idle=close_idle,
        close=lambda: closed.append("all"),
    )
    address = cast(FarmAddress, SimpleNamespace(address="tls://lab:8786", certificates=None))
    serving.serve_worker(cast(FarmWorker, worker), address, lambda line: None, stop)
    assert closed == ["idle", "idle", "all"]
