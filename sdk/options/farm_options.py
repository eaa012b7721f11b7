"""Options that the commands about a farm share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def complete_scheduler(incomplete: str) -> list[str]:
    """Return the scheduler that is meant where none is given, for the shell; never an error."""
    from sdk.select.farm_choice import named_scheduler
    from sdk.settings import read_settings
    from targets.errors import SdkError

    try:
        known = named_scheduler(None, read_settings())
    except (SdkError, OSError):
        return []
    return [known] if known is not None and known.startswith(incomplete) else []


def log_line(text: str) -> None:
    """Print one line of a service's log at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


SchedulerOption = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="The farm: tls://HOST:8786; without it SDK_SCHEDULER, or the one that sdk.toml names.",
        autocompletion=complete_scheduler,
    ),
]
CertificatesOption = Annotated[
    Path | None,
    typer.Option(
        "--farm-certificates",
        metavar="DIR",
        help="This machine's certificates; without it the folder farm in your settings.",
    ),
]
PlainOption = Annotated[
    bool,
    typer.Option("--plain", help="Allow tcp:// beyond this machine: anyone who reaches a port can run programs there."),
]
