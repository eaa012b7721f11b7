"""How a run uses a farm."""

from __future__ import annotations

from dataclasses import dataclass

from halide_autotune.autotune_loop.farm.address import FarmAddress
from halide_autotune.autotune_loop.farm.device import FarmDevice
from halide_autotune.autotune_loop.farm.fair_share import RunPriority
from halide_autotune.devices.device import Clock

# Device seconds that each device of a farm is handed ahead: what an answer takes over a busy network, and more.
FARM_AHEAD_S = 2.0


@dataclass(frozen=True)
class DeviceWish:
    """Which of a farm's devices a run takes, those that join later included.

    Attributes:
        words: names of devices or slots, and label:LABEL; empty takes all of the profile.
        clock: what all of them are measured with.
    """

    profile_name: str
    words: tuple[str, ...]
    clock: Clock = Clock.WALL

    def takes(self, device: FarmDevice) -> bool:
        """Whether a device is one of them."""
        if device.profile_name != self.profile_name or device.clock is not self.clock:
            return False
        return not self.words or any(names_device(word, device) for word in self.words)


def names_device(word: str, device: FarmDevice) -> bool:
    """Whether NAME, NAME.SLOT or label:LABEL means a device."""
    label = word.removeprefix("label:")
    if label != word:
        return label in device.labels
    whole, _, slot = device.name.rpartition(".")
    return word == device.name or (slot.isdecimal() and word == whole)


@dataclass(frozen=True)
class FarmUse:
    """A farm, and what a run wants of it.

    Attributes:
        user: who asks, for people: user@host.
        title: what is tuned, for people.
        builds_here: candidates that the user's own machine builds at once, beside the farm's workers.
    """

    address: FarmAddress
    wish: DeviceWish
    priority: RunPriority = RunPriority.NORMAL
    user: str = ""
    title: str = ""
    builds_here: int = 0
