"""An inventory of boards on the loopback, and the settings of a user who can reach them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from halide_autotune.sdk.settings import Settings
from tests.remote_board import RemoteBoard, SshBoard


class LoopbackLab:
    """Writes `devices.toml` and a home folder below `folder`.

    Attributes:
        inventory: the file.
        settings: those given, with that home folder.
    """

    def __init__(
        self, folder: Path, boards: Sequence[RemoteBoard], settings: Settings, cores: Sequence[int] = ()
    ) -> None:
        self.inventory = folder / "devices.toml"
        pinned = f"cores = {list(cores)}\n" if cores else ""
        self.inventory.write_text("\n".join(board.inventory_entry() + pinned for board in boards))
        home = folder / "home"
        (home / ".ssh").mkdir(parents=True)
        known = [board.access.known_hosts.read_text() for board in boards if isinstance(board, SshBoard)]
        (home / ".ssh" / "known_hosts").write_text("".join(known))
        environment = {**settings.environment, "HOME": str(home)}
        self.settings = replace(settings, config_folder=folder / "config", environment=environment)
