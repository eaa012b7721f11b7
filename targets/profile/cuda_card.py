"""NVIDIA cards: their figures for searching schedules and checking kernels, and the profiles that fit them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from halide_autotune.targets.profile.halide_target import HalideTarget
from halide_autotune.targets.values.checks import matching
from halide_autotune.targets.values.records import Source

_TABLE = Path(__file__).parent / "cuda_cards.toml"
THREADS_PER_WARP = 32


@dataclass(frozen=True)
class CudaCard:
    """One kind of card, in NVIDIA's terms.

    Attributes:
        name: the driver's, or that of the table of cards.
        compute_capability: such as '8.6'.
        multiprocessors: streaming multiprocessors; the search's parallelism.
        shared_memory_per_block_bytes: without the opt-in to more, which Halide's runtime never uses.
    """

    name: str
    compute_capability: Annotated[str, matching(r"[0-9]{1,3}\.[0-9]", "a compute capability such as 8.6")]
    multiprocessors: int
    shared_memory_per_multiprocessor_bytes: int
    threads_per_multiprocessor: int
    blocks_per_multiprocessor: int
    shared_memory_per_block_bytes: int = 48 * 1024
    threads_per_block: int = 1024
    registers_per_block: int = 65536

    @property
    def architecture(self) -> str:
        """`ptxas`'s name, such as 'sm_86'."""
        return f"sm_{self.capability_tenths}"

    @property
    def capability_tenths(self) -> int:
        """Ten times the compute capability, as Halide's targets have it."""
        return int(self.compute_capability.replace(".", ""))

    def search_parameters(self) -> dict[str, str]:
        """Return Anderson2021's parameters for the card, without `parallelism`."""
        return {
            "shared_memory_limit_kb": str(self.shared_memory_per_block_bytes // 1024),
            "shared_memory_sm_limit_kb": str(self.shared_memory_per_multiprocessor_bytes // 1024),
            "active_block_limit": str(self.blocks_per_multiprocessor),
            "active_warp_limit": str(self.threads_per_multiprocessor // THREADS_PER_WARP),
        }


@lru_cache(maxsize=1)
def known_cards() -> Mapping[str, CudaCard]:
    """Return the cards of the SDK's table, by name."""
    table = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    return {
        name: CudaCard(
            name=name,
            **card,
            **table["capability"][card["compute_capability"]],
        )
        for name, card in table["card"].items()
    }


GPU_AUTOSCHEDULER = "Anderson2021"
_CAPABILITY = re.compile(r"cuda_capability_([0-9]{2})")
# Halide's default without such a feature.
_LOWEST_CAPABILITY = 30


def check_card(card: CudaCard | None, target: HalideTarget, autoscheduler: str, source: Source) -> None:
    """Check that a profile has a card, code for cards and a search for cards, or none of the three.

    Raises:
        ProfileError: one of them is missing, or the code is for newer cards.
    """
    if card is None:
        if autoscheduler == GPU_AUTOSCHEDULER:
            raise source.refuse("the key 'gpu.card' is missing; expected a card such as \"A100\", in [gpu].")
        return
    if autoscheduler != GPU_AUTOSCHEDULER:
        raise source.refuse(
            f"key 'autoscheduler.name' must be {GPU_AUTOSCHEDULER} in a profile with a [gpu] table, "
            f"not {autoscheduler}."
        )
    if "cuda" not in target.features:
        raise source.refuse(f"key 'halide_target': '{target.text}' has no feature cuda, but the profile has [gpu].")
    if target.operating_system != "linux":
        raise source.refuse(f"key 'halide_target': kernels for cards need linux, not '{target.text}'.")
    wanted = compiled_capability(target)
    if wanted > card.capability_tenths:
        raise source.refuse(
            f"key 'halide_target' needs compute capability {wanted / 10:.1f}, but the card '{card.name}' has "
            f"{card.compute_capability}."
        )


def compiled_capability(target: HalideTarget) -> int:
    """Return ten times the compute capability that Halide compiles for."""
    found = (_CAPABILITY.fullmatch(word) for word in target.features)
    return max((int(match[1]) for match in found if match), default=_LOWEST_CAPABILITY)
