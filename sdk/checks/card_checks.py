"""What `sdk doctor` and `sdk targets show` say of this machine's NVIDIA card and of NVIDIA's assembler."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from devices.device import Clock, Device
from sdk.settings import Settings
from targets.cuda.ptxas import INSTALL_HINT, find_ptxas, ptxas_version
from targets.errors import SdkError
from targets.profile.profile import TargetProfile

_DRIVERS = ("libcuda.so.1", "libcuda.so")
_NO_DRIVER = "there is no CUDA driver (libcuda.so)"


@dataclass(frozen=True)
class Finding:
    """What was looked for.

    Attributes:
        there: whether it was found.
        text: what was found, or what is wrong.
        fix: what to do about it; may be empty.
    """

    there: bool
    text: str
    fix: str = ""


def find_local_card(profile: TargetProfile, settings: Settings) -> Finding:
    """This machine's card and its driver; takes a millisecond where there is no driver."""
    # A child asks the driver, which may hang; that it can be loaded is all that is tried here.
    if not any(_loads(name) for name in _DRIVERS):
        return Finding(False, _NO_DRIVER, "Install NVIDIA's driver, or name a machine that has a card with --device.")
    from sdk.select.card_choice import card_of

    here = Device("local", "local", profile.name, Clock.WALL, 1, uses_host_cores=True)
    try:
        state = card_of(here, profile, None, settings)
    except SdkError as error:
        return Finding(False, error.message, error.next_step)
    use = f"; {state.use_by_others}" if state.use_by_others else ""
    return Finding(True, state.describe() + use)


def find_assembler(settings: Settings) -> Finding:
    """NVIDIA's assembler, which finds kernels that a card cannot run before they are sent to one."""
    path = find_ptxas(settings.environment)
    if path is None:
        return Finding(False, "not installed: kernels that a card cannot run are found on the card only", INSTALL_HINT)
    try:
        return Finding(True, f"{ptxas_version(path)} ({path})")
    except SdkError as error:
        return Finding(False, error.message, error.next_step)


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
