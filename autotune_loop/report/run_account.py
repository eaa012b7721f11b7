"""What became of every schedule that a run has chosen."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.autotune_loop.store.read_database import read_database
from halide_autotune.autotune_loop.store.run_database import NOT_DONE
from halide_autotune.targets.errors import RunFolderError

_ACCOUNT_SQL = """
SELECT count(*), coalesce(sum(is_timed), 0), coalesce(sum(NOT is_timed AND has_failed), 0),
       coalesce(sum(NOT is_timed AND NOT has_failed AND is_left), 0)
FROM (SELECT symbol IN (SELECT symbol FROM measurements WHERE purpose = 'sample') AS is_timed,
             symbol IN (SELECT symbol FROM failures WHERE reason <> :not_done AND symbol IS NOT NULL) AS has_failed,
             symbol IN (SELECT symbol FROM failures WHERE reason = :not_done AND symbol IS NOT NULL) AS is_left
      FROM candidates)
"""


@dataclass(frozen=True)
class RunAccount:
    """Counts of schedules, or of parameter sets.

    Attributes:
        not_done: not timed because the run ended; a resumed run times them.
    """

    chosen: int
    timed: int
    failed: int
    not_done: int

    @property
    def unaccounted(self) -> int:
        """Those with neither a time nor a failure: of a run that goes on, or that was killed."""
        return self.chosen - self.timed - self.failed - self.not_done


def read_account(folder: Path) -> RunAccount:
    """Count what a run folder's database tells.

    Raises:
        RunFolderError: it cannot be read.
    """
    path = folder / "tuning.db"
    try:
        rows = read_database(
            path, lambda connection: connection.execute(_ACCOUNT_SQL, {"not_done": NOT_DONE}).fetchall()
        )
    except sqlite3.Error as error:
        raise RunFolderError(f"{path} cannot be read: {error}.", next_step="Restore it from a copy.") from error
    return RunAccount(*map(int, rows[0]))
