"""What the shell offers for the values of options; never an error."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import typer

from halide_autotune.sdk.settings import read_settings
from halide_autotune.targets.errors import SdkError
from halide_autotune.targets.values.options import DeclaredOption

if TYPE_CHECKING:  # takes a while to import, which no other command need wait for
    from halide_autotune.devices.inventory.inventory import InventoryDevice

Completion = Callable[[typer.Context, str], list[str]]


def completion_of(option: DeclaredOption) -> Completion | None:
    """Return the completion of an option: the one that it names, else the words that its type allows."""
    words = _words(option.hint)
    return COMPLETIONS.get(option.facts.complete) or (_offer(lambda context: words) if words else None)


def _offer(find: Callable[[typer.Context], Iterable[str]]) -> Completion:
    """Return what offers the words that start with the text so far; none where they cannot be found."""

    def offered(context: typer.Context, incomplete: str) -> list[str]:
        try:
            return [word for word in find(context) if word.startswith(incomplete)]
        except (SdkError, OSError):
            return []

    return offered


def _words(hint: Any) -> list[str]:
    if get_origin(hint) is Literal:
        return [str(word) for word in get_args(hint)]
    return [str(member.value) for member in hint] if isinstance(hint, type) and issubclass(hint, Enum) else []


def _targets(context: typer.Context) -> Iterable[str]:
    from halide_autotune.targets.profile.loader import profile_names

    return profile_names(read_settings().profile_folder)


def _weights(context: typer.Context) -> Iterable[str]:
    from halide_autotune.sdk.select.named_weights import open_registry

    return ["baseline", *open_registry(read_settings()).names()]


def _devices(context: typer.Context) -> tuple[InventoryDevice, ...]:
    from halide_autotune.sdk.inventory.lookup import open_inventory

    # While words are completed, some versions of typer leave what was typed as it is.
    typed = context.params.get("inventory")
    return open_inventory(None if typed is None else Path(typed), read_settings()).devices


def _inventory(context: typer.Context) -> Iterable[str]:
    return [device.name for device in _devices(context)]


def _labels(context: typer.Context) -> Iterable[str]:
    return [
        f"label:{label}" for label in dict.fromkeys(label for device in _devices(context) for label in device.labels)
    ]


def _kinds(context: typer.Context) -> Iterable[str]:
    from halide_autotune.devices.local.open_device import DEVICE_KINDS

    return DEVICE_KINDS


def _clocks(context: typer.Context) -> Iterable[str]:
    from halide_autotune.sdk.select.clock_choice import EMULATOR_CLOCKS

    return EMULATOR_CLOCKS


def _scheduler(context: typer.Context) -> Iterable[str]:
    from halide_autotune.sdk.select.farm_choice import named_scheduler

    known = named_scheduler(None, read_settings())
    return [] if known is None else [known]


def _complete_runs(context: typer.Context, incomplete: str) -> list[str]:
    """The runs of this folder, and folders that may have others."""
    from halide_autotune.sdk.project.run_folders import run_folders

    here = Path.cwd()
    runs = _offer(lambda context: [str(run.relative_to(here)) for run in run_folders(here)])(context, incomplete)
    typed = Path(incomplete)
    parent = typed if incomplete.endswith("/") else typed.parent
    folders = _offer(lambda context: [f"{path}/" for path in sorted(parent.iterdir()) if path.is_dir()])
    known = (*(f"{run}/" for run in runs), ".")
    return [*runs, *(path for path in folders(context, incomplete) if not path.startswith(known))]


def _complete_resumed(context: typer.Context, incomplete: str) -> list[str]:
    """The runs after `--resume`; else a generator is wanted, and the shell offers files."""
    return _complete_runs(context, incomplete) if context.params.get("resume") else []


def _complete_devices(context: typer.Context, incomplete: str) -> list[str]:
    """What may be timed on: this machine, the devices of the inventory, and their labels."""
    offered = (_offer(_kinds), COMPLETIONS["inventory"], _offer(_labels))
    return [word for offer in offered for word in offer(context, incomplete)]


def _complete_techniques(context: typer.Context, incomplete: str) -> list[str]:
    """Techniques that are not yet named, of several by commas the last."""
    *named, last = incomplete.split(",")
    before = "".join(f"{name}," for name in named)
    return [f"{before}{name}" for name in _offer(_techniques)(context, last) if name not in named]


def _techniques(context: typer.Context) -> Iterable[str]:
    from halide_autotune.autotune_loop.search.techniques.registry import TECHNIQUES

    return TECHNIQUES.names()


def _models(context: typer.Context) -> Iterable[str]:
    from halide_autotune.autotune_loop.search.models.model import MODELS

    return MODELS.names()


COMPLETIONS: dict[str, Completion] = {
    "targets": _offer(_targets),
    "weights": _offer(_weights),
    "inventory": _offer(_inventory),
    "devices": _complete_devices,
    "clocks": _offer(_clocks),
    "scheduler": _offer(_scheduler),
    "runs": _complete_runs,
    "resumed": _complete_resumed,
    "techniques": _complete_techniques,
    "models": _offer(_models),
}
