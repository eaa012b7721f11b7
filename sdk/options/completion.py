"""What the shell offers for the values of options; never an error."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Literal, get_args, get_origin

import typer

from sdk.options.devices_options import complete_device_names
from sdk.options.farm_options import complete_scheduler
from sdk.options.shared_options import complete_target_names, complete_weights_names
from targets.values.options import DeclaredOption


def completion_of(option: DeclaredOption) -> Callable[..., list[str]] | None:
    """Return the completion of an option: the one that it names, else the words that its type allows."""
    named = _COMPLETIONS.get(option.facts.complete)
    words = _words(option.hint)
    if named is not None or not words:
        return named
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def _words(hint: Any) -> list[str]:
    if get_origin(hint) is Literal:
        return [str(word) for word in get_args(hint)]
    return [str(member.value) for member in hint] if isinstance(hint, type) and issubclass(hint, Enum) else []


def _complete_devices(context: typer.Context, incomplete: str) -> list[str]:
    from devices.local.open_device import DEVICE_KINDS

    kinds = [kind for kind in DEVICE_KINDS if kind.startswith(incomplete)]
    return [*kinds, *complete_device_names(context, incomplete)]


def _complete_clocks(incomplete: str) -> list[str]:
    from sdk.select.clock_choice import EMULATOR_CLOCKS

    return [clock for clock in EMULATOR_CLOCKS if clock.startswith(incomplete)]


_COMPLETIONS: dict[str, Callable[..., list[str]]] = {
    "targets": complete_target_names,
    "weights": complete_weights_names,
    "devices": _complete_devices,
    "clocks": _complete_clocks,
    "scheduler": complete_scheduler,
}
