"""The parameters that a run found for the generator's own schedule, with its times and options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.autotune_loop.shipping.recorded_facts import check_has_winner, read_recorded_facts
from halide_autotune.autotune_loop.shipping.run_winner import RunWinner
from halide_autotune.autotune_loop.store.parameters_file import read_parameters
from halide_autotune.autotune_loop.store.run_record import RunRecord
from halide_autotune.targets.errors import RunFolderError


@dataclass(frozen=True)
class RunParameters(RunWinner):
    """The tuned parameters of one argument set of a run, ready to be shipped.

    Attributes:
        values: of the parameters that were tuned.
    """

    values: Mapping[str, str]


def read_run_parameters(folder: Path, record: RunRecord, index: int, path: Path) -> RunParameters:
    """The parameters that a run has published for an argument set.

    Raises:
        RunFolderError: they are missing, were changed, or are damaged.
    """
    check_has_winner(folder, path, index)
    facts = read_recorded_facts(path, folder / "tuning.db", index)
    values = read_parameters(path)
    if values != dict(facts.published.parameters):
        raise RunFolderError(f"{path} is damaged.", next_step="Continue the run, which publishes it again.")
    return RunParameters(folder, record, index, facts, path, values)
