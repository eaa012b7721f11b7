"""Weights by name: those that come with the SDK, and a user's own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from targets.errors import WeightsError
from weights.lineage import Lineage, read_lineage, write_lineage
from weights.weights_file import Weights, read_weights, weights_sha256, write_weights

SHIPPED_FOLDER = Path(__file__).parent / "shipped"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}(@[A-Za-z0-9][A-Za-z0-9._-]{0,63})?", re.ASCII)


@dataclass(frozen=True)
class RegisteredWeights:
    """One entry: a `.weights` file with its lineage beside it.

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
    """An entry that cannot be used, and why."""

    name: str
    path: Path
    message: str


class WeightsRegistry:
    """The weights in the user's folder and those shipped; a user's entry hides a shipped one of its name.

    Args:
        folder: the user's; it need not exist.
        shipped: of the SDK.
    """

    def __init__(self, folder: Path, shipped: Path = SHIPPED_FOLDER) -> None:
        self.folder = folder
        self._shipped = shipped

    def entries(self) -> tuple[list[RegisteredWeights], list[DamagedEntry]]:
        """Every entry by name, and those that are damaged."""
        sound: dict[str, RegisteredWeights] = {}
        damaged: dict[str, DamagedEntry] = {}
        for folder in (self._shipped, self.folder):
            for path in sorted(folder.glob("*.weights")) if folder.is_dir() else ():
                try:
                    sound[path.stem] = self._read(path)
                    damaged.pop(path.stem, None)
                except WeightsError as error:
                    damaged[path.stem] = DamagedEntry(path.stem, path, str(error))
                    sound.pop(path.stem, None)
        return [sound[name] for name in sorted(sound)], [damaged[name] for name in sorted(damaged)]

    def names(self) -> list[str]:
        """The names of all entries, the damaged ones too."""
        folders = [folder for folder in (self._shipped, self.folder) if folder.is_dir()]
        return sorted({path.stem for folder in folders for path in folder.glob("*.weights")})

    def find(self, name: str) -> RegisteredWeights:
        """The entry of that name.

        Raises:
            WeightsError: there is none, or it is damaged.
        """
        check_name(name)
        for folder in (self.folder, self._shipped):
            path = folder / f"{name}.weights"
            if path.is_file():
                return self._read(path)
        known = ", ".join(self.names()) or "none yet"
        raise WeightsError(f"There are no weights named {name!r}.", next_step=f"There are: {known}.")

    def _read(self, path: Path) -> RegisteredWeights:
        weights = read_weights(path)
        sha256 = weights_sha256(weights)
        lineage = read_lineage(path, sha256) or Lineage(network=weights.network.value)
        return RegisteredWeights(path.stem, path, sha256, lineage, path.parent == self._shipped)

    def add(self, name: str, weights: Weights, lineage: Lineage) -> RegisteredWeights:
        """Keep weights in the user's folder under a name, in place of what had it.

        Raises:
            WeightsError: the name is none, or the folder cannot be written.
        """
        check_name(name)
        path = self.folder / f"{name}.weights"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WeightsError(
                f"{self.folder} cannot be made: {error.strerror or error}.", next_step="Free some space, or make it."
            ) from error
        write_weights(weights, path)
        write_lineage(lineage, path)
        return RegisteredWeights(name, path, weights_sha256(weights), lineage, is_shipped=False)


def entry_name(profile: str, device: str = "") -> str:
    """What weights of a profile, or of one device with it, are called."""
    return f"{profile}@{device}" if device else profile


def check_name(name: str) -> None:
    """Raises WeightsError for what is no entry's name; a name becomes a file's."""
    if _NAME.fullmatch(name) is None:
        raise WeightsError(
            f"{name!r} cannot name weights.",
            next_step="Use PROFILE or PROFILE@DEVICE, of letters, digits, dots, dashes and underscores.",
        )


def nearest(
    entries: Sequence[RegisteredWeights], profiles: Sequence[str], device: str, network: str, clock: str
) -> RegisteredWeights | None:
    """The weights to start from: of this device, else of its profile as a whole, else of another device with it.

    Args:
        profiles: the profile, then those that are as good as it, the nearest first.

    Only weights of the network count, and only those of the clock, where it is known. Among equals those with more
    samples are nearer.
    """

    def distance(entry: RegisteredWeights) -> tuple[int, int, int]:
        told = entry.lineage
        kind = 0 if device and told.device == device else 1 if not told.device else 2
        return profiles.index(told.profile), kind, -told.samples

    fitting = [
        entry
        for entry in entries
        if entry.lineage.network == network and entry.lineage.profile in profiles and entry.lineage.clock in ("", clock)
    ]
    return min(fitting, key=distance, default=None)
