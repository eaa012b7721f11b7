"""What a resumed run's folder holds already, for views that show the best so far."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from targets.errors import RunFolderError

if TYPE_CHECKING:
    from autotune_loop.candidate import Measured


def earlier_samples(run_folder: str) -> Sequence[Measured]:
    """The schedules timed so far in a run folder; none where it cannot be read (the run itself will say so)."""
    from autotune_loop.store.run_database import RunDatabase

    try:
        with contextlib.closing(RunDatabase(Path(run_folder) / "tuning.db")) as database:
            return database.measured()
    except RunFolderError:
        return ()
