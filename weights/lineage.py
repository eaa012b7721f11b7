"""The lineage of weights: what they were trained on, where that was timed, and how well they rank schedules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from halide_autotune.targets.errors import UsageError, WeightsError, os_error_as
from halide_autotune.targets.process.atomic_write import write_atomically
from halide_autotune.targets.values.records import Source, plain, record, toml_text
from halide_autotune.weights.weights_file import FEATURE_VERSION, read_weights, weights_sha256

_HASH = "weights_sha256"


@dataclass(frozen=True)
class Training:
    """What weights were trained on, and their scores; 0 and None if unknown.

    Attributes:
        pipelines, samples, rounds: over all generations of an entry.
        held_out_samples: schedules that only scored them.
        pairwise_accuracy, best_in_top_8: the scores; see `RankingScores`.
    """

    pipelines: int = 0
    samples: int = 0
    rounds: int = 0
    held_out_samples: int = 0
    pairwise_accuracy: float | None = None
    best_in_top_8: float | None = None


@dataclass(frozen=True)
class Lineage:
    """Where weights come from; empty or 0 if unknown.

    Attributes:
        profile: the target profile of the samples.
        device: the inventory's name of the device that timed them; several are joined with commas.
        clock: the clock that timed them.
        parallelism: cores of the device.
        network: the autoscheduler of the weights.
        halide_version, feature_version: of the plug-in that made the samples.
        parent_sha256: the weights that the training started from.
        training: what they were trained on, and their scores.
        created: date, as YYYY-MM-DD.
        note: one line for people.
    """

    profile: str = ""
    device: str = ""
    clock: str = ""
    parallelism: int = 0
    network: str = ""
    halide_version: str = ""
    feature_version: int = FEATURE_VERSION
    parent_sha256: str = ""
    training: Training = Training()
    created: str = ""
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the values as one flat table, as the file and `--json` have them."""
        table: dict[str, Any] = plain(self)
        training: dict[str, Any] = table.pop("training")
        return table | training


def check_lineage_place(weights_path: Path) -> None:
    """Check that what `write_lineage` would replace is a lineage, and not somebody's file of the same name.

    Raises:
        UsageError: it is another file.
    """
    beside = weights_path.with_suffix(".toml")
    source = Source(beside, WeightsError)
    try:
        is_lineage = _HASH in source.toml(source.read(beside))
    except FileNotFoundError:
        return
    except WeightsError:
        is_lineage = False
    if not is_lineage:
        raise UsageError(
            f"The lineage of {weights_path} would replace {beside}, which is no lineage of weights.",
            next_step="Give another name with --output.",
        )


def write_lineage(lineage: Lineage, weights_path: Path) -> Path:
    """Write the lineage beside a weights file, as `.toml` with the hash of these weights, and return its path.

    Raises:
        WeightsError: it cannot be written, or the weights cannot be read.
    """
    beside = weights_path.with_suffix(".toml")
    text = toml_text({_HASH: weights_sha256(read_weights(weights_path)), **lineage.to_dict()})
    next_step = "Check that the folder is writable and the disk has room."
    with os_error_as(WeightsError, f"{beside} cannot be written", next_step=next_step):
        write_atomically(beside, text.encode())
    return beside


def read_lineage(weights_path: Path, sha256: str) -> Lineage | None:
    """Return the lineage in the `.toml` beside weights with that hash; None if there is none, or one of other weights.

    Unknown keys are ignored.

    Raises:
        WeightsError: it is damaged, or no TOML.
    """
    beside = weights_path.with_suffix(".toml")
    source = Source(beside, WeightsError, "Remove it, or import the weights again.")
    try:
        table = source.toml(source.read(beside))
    except FileNotFoundError:
        return None
    # The two files are written one after the other, so the lineage may still be that of older weights.
    if table.get(_HASH) != sha256:
        return None
    flat = {key: value for key, value in table.items() if key != "training"}
    training = source.check(record(Training, passes_unknown=True), flat)
    lineage = source.check(record(Lineage, passes_unknown=True), flat)
    return replace(lineage, training=training)
