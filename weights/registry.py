"""Weights by name: the user's own, and those that come with the SDK."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.targets.errors import WeightsError, os_error_as
from halide_autotune.targets.process.atomic_write import write_atomically
from halide_autotune.weights.lineage import Lineage, read_lineage, write_lineage
from halide_autotune.weights.weights_file import Weights, read_weights, weights_sha256, write_weights

SHIPPED_FOLDER = Path(__file__).parent / "shipped"
_NEST_PRIOR_SUFFIX = ".nests.npz"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}(@[A-Za-z0-9][A-Za-z0-9._-]{0,63})?", re.ASCII)


@dataclass(frozen=True)
class RegisteredWeights:
    """A `.weights` file with its lineage.

    Attributes:
        name: '<profile>' or '<profile>@<device>'.
        is_shipped: it came with the SDK.
    """

    name: str
    path: Path
    sha256: str
    lineage: Lineage
    is_shipped: bool


@dataclass(frozen=True)
class DamagedEntry:
    """An entry that cannot be used, and the error."""

    name: str
    path: Path
    message: str


class WeightsRegistry:
    """The weights in the user's folder and the SDK's; a user's entry hides one of the SDK's with the same name.

    Args:
        folder: the user's; it may be missing.
        shipped: the SDK's.
    """

    def __init__(self, folder: Path, shipped: Path = SHIPPED_FOLDER) -> None:
        self.folder = folder
        self._shipped = shipped

    def entries(self) -> tuple[list[RegisteredWeights], list[DamagedEntry]]:
        """Return the entries by name, and the damaged ones."""
        sound: list[RegisteredWeights] = []
        damaged: list[DamagedEntry] = []
        for name, path in self._paths().items():
            try:
                sound.append(self._read(path))
            except WeightsError as error:
                damaged.append(DamagedEntry(name, path, str(error)))
        return sound, damaged

    def names(self) -> list[str]:
        """Return the names of all entries, also of damaged ones."""
        return list(self._paths())

    def find(self, name: str) -> RegisteredWeights:
        """Return the entry of a name.

        Raises:
            WeightsError: there is none, or it is damaged.
        """
        check_name(name)
        paths = self._paths()
        if name not in paths:
            known = ", ".join(paths) or "none yet"
            raise WeightsError(f"There are no weights named {name!r}.", next_step=f"There are: {known}.")
        return self._read(paths[name])

    def shipped(self, name: str) -> RegisteredWeights | None:
        """The entry of a name that came with the SDK, also where the user has one of that name.

        Raises:
            WeightsError: it is damaged.
        """
        path = self._shipped / f"{name}.weights"
        return self._read(path) if path.is_file() else None

    def _paths(self) -> dict[str, Path]:
        folders = (self._shipped, self.folder)
        found = {path.stem: path for folder in folders for path in folder.glob("*.weights")}
        return dict(sorted(found.items()))

    def _read(self, path: Path) -> RegisteredWeights:
        weights = read_weights(path)
        sha256 = weights_sha256(weights)
        lineage = read_lineage(path, sha256) or Lineage(network=weights.network.value)
        return RegisteredWeights(path.stem, path, sha256, lineage, path.parent == self._shipped)

    def nest_prior(self, name: str) -> Path | None:
        """The file of what the loop nests of other programs say on a device: of weights of a name, else of the
        profile's; None if neither has one."""
        names = dict.fromkeys([name, name.partition("@")[0]])
        files = [
            nest_prior_beside(folder / f"{each}.weights") for each in names for folder in (self.folder, self._shipped)
        ]
        return next((file for file in files if file.is_file()), None)

    def add(self, name: str, weights: Weights, lineage: Lineage, nest_prior: Path | None = None) -> RegisteredWeights:
        """Store weights in the user's folder under a name; they replace an entry of that name.

        Args:
            nest_prior: the file of what loop nests say, if it was learnt with the weights.

        Raises:
            WeightsError: the name is invalid, or the folder cannot be written.
        """
        check_name(name)
        path = self.folder / f"{name}.weights"
        next_step = "Check that its parent is writable and the disk has room."
        beside = nest_prior_beside(path)
        with os_error_as(WeightsError, f"{self.folder} cannot be written", next_step=next_step):
            self.folder.mkdir(parents=True, exist_ok=True)
            content = None if nest_prior is None else nest_prior.read_bytes()  # it may be the one that is replaced
            if content is None:
                beside.unlink(missing_ok=True)
            else:
                write_atomically(beside, content)
        write_weights(weights, path)
        write_lineage(lineage, path)
        return RegisteredWeights(name, path, weights_sha256(weights), lineage, is_shipped=False)


def nest_prior_beside(weights_path: Path) -> Path:
    """Where the file is of what loop nests say, for a weights file that it was learnt with."""
    return weights_path.with_suffix(_NEST_PRIOR_SUFFIX)


def entry_name(profile: str, device: str = "") -> str:
    """Return the name of the weights of a profile, or of one device with it."""
    return f"{profile}@{device}" if device else profile


def check_name(name: str) -> None:
    """Raise WeightsError for a name that no entry can have; the name becomes that of a file."""
    if _NAME.fullmatch(name) is None:
        raise WeightsError(
            f"{name!r} cannot name weights.",
            next_step="Use PROFILE or PROFILE@DEVICE, of letters, digits, dots, dashes and underscores.",
        )


def nearest_weights(
    entries: Sequence[RegisteredWeights], profiles: Sequence[str], device: str, network: str, clock: str
) -> RegisteredWeights | None:
    """Return the weights to start from: of this device, else of its profile, else of another device with the profile.

    Only weights for the network count, and only of the clock if their clock is known; those that come with the SDK from
    a simulated clock also stand in for device time where nothing nearer does. Among equals those with more samples win.

    Args:
        profiles: the profile, then those that stand in for it, the nearest first.
    """

    def distance(entry: RegisteredWeights) -> tuple[int, bool, int, int]:
        lineage = entry.lineage
        kind = 0 if device and lineage.device == device else 1 if not lineage.device else 2
        return profiles.index(lineage.profile), not is_of_clock(entry), kind, -lineage.training.samples

    def is_of_clock(entry: RegisteredWeights) -> bool:
        return entry.lineage.clock in ("", clock)

    def stands_in(entry: RegisteredWeights) -> bool:
        return entry.is_shipped and (entry.lineage.clock, clock) == ("simulated", "wall")

    fitting = [
        entry
        for entry in entries
        if entry.lineage.network == network
        and entry.lineage.profile in profiles
        and (is_of_clock(entry) or stands_in(entry))
    ]
    return min(fitting, key=distance, default=None)
