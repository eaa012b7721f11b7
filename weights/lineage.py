"""Where weights come from: what they were trained on, from what, and how well they rank."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from targets.errors import WeightsError
from targets.process.atomic_write import write_atomically
from targets.values.records import Source, plain, record, toml_text
from weights.weights_file import FEATURE_VERSION, read_weights, weights_sha256


@dataclass(frozen=True)
class Lineage:
    """What is known of weights; empty text, 0 and None where it is not.

    Attributes:
        profile: the target profile of the samples.
        device: the device that timed them, as the inventory calls it; several are joined with commas.
        clock: what they were timed with.
        parallelism: cores of the device.
        network: the autoscheduler that the weights are for.
        halide_version, feature_version: of the plug-in that made the samples.
        parent_sha256: of the weights that the training started from.
        pipelines, samples, rounds: what they were trained on, over all generations of this entry.
        held_out_samples: schedules that were only judged by.
        pairwise_accuracy, best_in_top_8: on those; see `RankingScores`.
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
    pipelines: int = 0
    samples: int = 0
    rounds: int = 0
    held_out_samples: int = 0
    pairwise_accuracy: float | None = None
    best_in_top_8: float | None = None
    created: str = ""
    note: str = ""


def format_lineage(lineage: Lineage, weights_sha256: str) -> str:
    """The TOML that lies beside the weights; it names the weights by their hash, so that the two cannot be mixed up."""
    return toml_text({"weights_sha256": weights_sha256, **plain(lineage)})


def write_lineage(lineage: Lineage, weights_path: Path) -> Path:
    """Write the lineage of a weights file beside it, as `.toml`; returns its path.

    Raises:
        WeightsError: it cannot be written, or the weights cannot be read.
    """
    beside = weights_path.with_suffix(".toml")
    text = format_lineage(lineage, weights_sha256(read_weights(weights_path)))
    try:
        write_atomically(beside, text.encode())
    except OSError as error:
        raise WeightsError(
            f"{beside} cannot be written: {error.strerror or error}.", next_step="Free some space, or mend its folder."
        ) from error
    return beside


def read_lineage(weights_path: Path, sha256: str) -> Lineage | None:
    """What the `.toml` beside a weights file tells of weights with that hash; None where there is none, or of others.

    Raises:
        WeightsError: it is damaged.
    """
    beside = weights_path.with_suffix(".toml")
    try:
        text = _source(beside).read(beside)
    except FileNotFoundError:
        return None
    lineage, belongs_to = parse_lineage(text, str(beside))
    # The two are written one after the other: a lineage of other weights says nothing about these.
    return lineage if belongs_to == sha256 else None


def parse_lineage(text: str, source: str) -> tuple[Lineage, str]:
    """The lineage and the hash of the weights it belongs to.

    Raises:
        WeightsError: it is no TOML, or a value has another type; unknown keys are passed over.
    """
    table = _source(source).toml(text)
    lineage = _source(source).check(record(Lineage, passes_unknown=True), table)
    return lineage, str(table.get("weights_sha256", ""))


def _source(name: str | Path) -> Source:
    return Source(name, WeightsError, next_step="Import the weights again.")
