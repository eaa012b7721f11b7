"""Who is told how a run has ended: what `--notify` names, else what the user's own settings name."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from halide_autotune.sdk.service.notify.program import ProgramNotifier
from halide_autotune.sdk.service.notify.webhook import WebhookNotifier, is_url
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.values.records import Source, record

FILE_NAME = "notify.toml"
NOBODY = "none"


class Notifier(Protocol):
    """Is told once how a run has ended."""

    @property
    def label(self) -> str:
        """What messages call it; never a secret."""
        ...

    def send(self, document: str) -> str:
        """Hand a JSON document over, within a time limit; return what went wrong, empty if nothing did."""
        ...


@dataclass(frozen=True)
class _NotifyFile:
    command: tuple[str, ...] = ()
    url: str | None = None


def choose_notifiers(given: Sequence[str], settings: Settings) -> list[Notifier]:
    """Those that are given, each a program or a URL, else those of `notify.toml` in the user's settings.

    A project's sdk.toml cannot name any: it comes with a checkout, and must not start programs.

    Raises:
        UsageError: one cannot be used; the message has no URL, which may be a secret.
    """
    if NOBODY in given:
        if len(given) > 1:
            raise UsageError(f"--notify {NOBODY} excludes every other --notify.", next_step="Leave one of them out.")
        return []
    environment = settings.environment
    if given:
        return [
            WebhookNotifier.at(text, "--notify") if is_url(text) else _program([text], environment, "--notify")
            for text in given
        ]
    file = settings.config_folder / FILE_NAME
    source = Source(file, UsageError, next_step="Correct the file or move it away.")
    try:
        asked = source.check(record(_NotifyFile), source.toml(source.read(file)))
    except FileNotFoundError:
        return []
    found: list[Notifier] = []
    if asked.command:
        found.append(_program(asked.command, environment, f"{file}: command"))
    if asked.url is not None:
        found.append(WebhookNotifier.at(asked.url, f"{file}: url"))
    return found


def _program(command: Sequence[str], environment: Mapping[str, str], where: str) -> ProgramNotifier:
    """Find the program now, so that a wrong name is not told only after the run."""
    name = command[0]
    program = shutil.which(name, path=environment.get("PATH"))
    if program is None:
        raise UsageError(
            f"{where}: there is no program {name!r} that can be started.",
            next_step="Give the path of an executable file, the name of one on PATH, or a URL that starts with https://.",
        )
    return ProgramNotifier((str(Path(program).absolute()), *command[1:]), environment)
