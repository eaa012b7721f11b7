"""An NVIDIA card as the schedule search and the check of assembled kernels see it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

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
