"""A farm on the loopback of one worker with one board, for tests that are not about how it comes together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from halide_autotune.devices.agent.program import agent_for
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.process.content_cache import ContentCache
from tests.loopback_farm import LoopbackFarm, loopback_farm
from tests.loopback_lab import LoopbackLab
from tests.remote_board import ssh_board


@contextlib.contextmanager
def farm_with_a_board(folder: Path, settings: Settings, cache: ContentCache, worker: str) -> Iterator[LoopbackFarm]:
    """The board is called 'board'.

    Args:
        worker: its name, that no other file's farm has.
    """
    agent_for("x86_64", cache)
    with ssh_board(folder / "board", "board") as board, loopback_farm(folder / "farm", settings) as farm:
        lab = LoopbackLab(folder, [board], settings)
        # Its times say nothing on a machine that others use, too: nobody is to wait until it is quiet.
        lab.inventory.write_text(lab.inventory.read_text() + "emulated = true\n")
        farm.start_worker(worker, lab.settings, lab.inventory, 1)
        yield farm
