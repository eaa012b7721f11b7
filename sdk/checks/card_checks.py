"""Checks of this machine's NVIDIA card and of NVIDIA's assembler."""

from __future__ import annotations

import ctypes

from halide_autotune.devices.device import Clock, Device
from halide_autotune.sdk.checks.check import Check, try_check
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.cuda.ptxas import INSTALL_HINT, find_ptxas, ptxas_version
from halide_autotune.targets.profile.profile import TargetProfile

_DRIVERS = ("libcuda.so.1", "libcuda.so")


def check_local_card(profile: TargetProfile, settings: Settings) -> Check:
    """Check this machine's card and its driver; takes a millisecond if there is no driver."""
    # Only whether the driver loads is tried here: it may hang, so a child process asks it.
    if not any(_loads(name) for name in _DRIVERS):
        fix = "Install NVIDIA's driver, or choose a machine with a card: --device NAME."
        return Check("card", False, "there is no CUDA driver (libcuda.so)", fix)
    from halide_autotune.sdk.select.card_choice import card_of

    def describe() -> str:
        here = Device("local", "local", profile.name, Clock.WALL, 1, uses_host_cores=True)
        state = card_of(here, profile, None, settings)
        return "; ".join(text for text in (state.describe(), state.use_by_others) if text)

    return try_check("card", describe)


def check_assembler(settings: Settings) -> Check:
    """Check for NVIDIA's assembler, which rejects kernels that a card cannot run before they are sent to it."""
    path = find_ptxas(settings.environment)
    if path is None:
        found = "not installed: kernels that a card cannot run are found on the card only"
        return Check("ptxas", False, found, INSTALL_HINT, needed=False)
    return try_check("ptxas", lambda: f"{ptxas_version(path)} ({path})", needed=False)


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
