"""The executor of one machine talks to nobody: no port is opened, nothing is left in the temporary folder."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.execute.local_executor import LocalExecutor
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.local.cores import plan_cores
from tests.plain_tasks import Divide, Nap
from tests.run_specs import make_context, make_spec, make_task

_LISTENING = "0A"


def _context(folder: Path) -> RunContext:
    usable = frozenset(os.sched_getaffinity(0))
    spec = make_spec(make_task("none", folder / "none.py"), profile="x86-64", parallelism=1)
    return make_context(spec, [Device("local", "local", "x86-64", Clock.WALL, 1, True)], folder, plan_cores(usable, 0))


def _listening_sockets() -> set[str]:
    """Inodes of this process's TCP sockets that accept connections."""
    listening = set()
    for table in ("tcp", "tcp6"):
        path = Path("/proc/self/net") / table
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            columns = line.split()
            if columns[3] == _LISTENING:
                listening.add(columns[9])
    mine = set()
    for link in Path("/proc/self/fd").iterdir():
        try:
            target = os.readlink(link)
        except FileNotFoundError:
            continue
        mine.add(target.removeprefix("socket:[").removesuffix("]"))
    return listening & mine


def test_no_port_is_opened_and_no_file_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    before = _listening_sockets()

    with contextlib.closing(LocalExecutor(_context(tmp_path), build_slots=2)) as executor:
        assert executor.submit(Divide(tmp_path, 6, 2)).result() == 3
        assert executor.submit(Nap("local", 0.004)).result() == 0.004
        assert _listening_sockets() == before

    assert list(temporary.iterdir()) == []
