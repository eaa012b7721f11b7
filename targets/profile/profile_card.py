"""The card of a CUDA profile, checked against what the profile compiles and searches with."""

from __future__ import annotations

import re

from targets.errors import ProfileError
from targets.profile.cuda_card import CudaCard
from targets.profile.halide_target import HalideTarget

GPU_AUTOSCHEDULER = "Anderson2021"
_CAPABILITY = re.compile(r"cuda_capability_([0-9]{2})")
# What Halide compiles for where no feature names a capability.
_LOWEST_CAPABILITY = 30


def check_card(card: CudaCard | None, target: HalideTarget, autoscheduler: str, where: str) -> None:
    """A card, code for a card and a search for cards go together.

    Raises:
        ProfileError: one of them is there without the others, or the code is for newer cards.
    """
    if card is None:
        if autoscheduler == GPU_AUTOSCHEDULER:
            raise ProfileError(f"{where}: the key 'gpu.card' is missing; expected a card such as \"A100\", in [gpu].")
        return
    if autoscheduler != GPU_AUTOSCHEDULER:
        raise ProfileError(
            f"{where}: key 'autoscheduler.name' must be {GPU_AUTOSCHEDULER} in a profile with a [gpu] table, "
            f"not {autoscheduler}."
        )
    if "cuda" not in target.features:
        raise ProfileError(
            f"{where}: key 'halide_target': '{target.text}' has no feature cuda, and the profile has a [gpu] table."
        )
    if target.operating_system != "linux":
        raise ProfileError(f"{where}: key 'halide_target': kernels for cards are run under linux, not '{target.text}'.")
    wanted = compiled_capability(target)
    major, minor = card.compute_capability
    if wanted > 10 * major + minor:
        raise ProfileError(
            f"{where}: key 'halide_target' asks for compute capability {wanted / 10:.1f}, and the card "
            f"'{card.name}' has {card.capability_text}; expected no more than that."
        )


def compiled_capability(target: HalideTarget) -> int:
    """Ten times the compute capability that Halide compiles for."""
    found = (_CAPABILITY.fullmatch(word) for word in target.features)
    return max((int(match[1]) for match in found if match), default=_LOWEST_CAPABILITY)
