"""NVIDIA cards: what a schedule search and the check of kernels know of one, and which profiles fit it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from targets.errors import ProfileError
from targets.profile.halide_target import HalideTarget

_TABLE = Path(__file__).parent / "cuda_cards.toml"
THREADS_PER_WARP = 32
THREADS_PER_BLOCK = 1024
REGISTERS_PER_BLOCK = 65536
SHARED_MEMORY_PER_BLOCK_BYTES = 48 * 1024


@dataclass(frozen=True)
class CudaCard:
    """One kind of card, in NVIDIA's terms.

    Attributes:
        name: as the driver, or the table of cards, calls it.
        compute_capability: major and minor, such as (8, 6).
        multiprocessors: streaming multiprocessors; the search's parallelism.
        shared_memory_per_block_bytes: without opting in to more, which Halide's runtime never does.
    """

    name: str
    compute_capability: tuple[int, int]
    multiprocessors: int
    shared_memory_per_multiprocessor_bytes: int
    threads_per_multiprocessor: int
    blocks_per_multiprocessor: int
    shared_memory_per_block_bytes: int = SHARED_MEMORY_PER_BLOCK_BYTES
    threads_per_block: int = THREADS_PER_BLOCK
    registers_per_block: int = REGISTERS_PER_BLOCK

    @property
    def architecture(self) -> str:
        """As `ptxas` calls it, such as 'sm_86'."""
        return "sm_{}{}".format(*self.compute_capability)

    @property
    def capability_text(self) -> str:
        """Such as '8.6'."""
        return "{}.{}".format(*self.compute_capability)

    def search_parameters(self) -> dict[str, str]:
        """What Anderson2021 is told beside `parallelism`."""
        return {
            "shared_memory_limit_kb": str(self.shared_memory_per_block_bytes // 1024),
            "shared_memory_sm_limit_kb": str(self.shared_memory_per_multiprocessor_bytes // 1024),
            "active_block_limit": str(self.blocks_per_multiprocessor),
            "active_warp_limit": str(self.threads_per_multiprocessor // THREADS_PER_WARP),
        }

    def to_dict(self) -> dict[str, object]:
        """JSON-ready values."""
        return asdict(self) | {"compute_capability": self.capability_text}


@lru_cache(maxsize=1)
def known_cards() -> Mapping[str, CudaCard]:
    """The cards of the table that ships with the SDK, by name."""
    table = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    return {
        name: CudaCard(
            name=name,
            compute_capability=_capability(card["compute_capability"]),
            multiprocessors=card["multiprocessors"],
            **table["capability"][card["compute_capability"]],
        )
        for name, card in table["card"].items()
    }


def _capability(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return int(major), int(minor)


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
