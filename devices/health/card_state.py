"""The NVIDIA card of a machine, as a small program reports it that runs there and loads the driver if there is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from halide_autotune.devices.agent.program import build_c_program
from halide_autotune.devices.agent.protocol import Printable, read_reply
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.timing.report import read_events
from halide_autotune.devices.transport import Transport
from halide_autotune.targets.errors import DeviceError
from halide_autotune.targets.process.c_toolchain import CToolchain
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.profile.cuda_card import CudaCard
from halide_autotune.targets.values.checks import whole_number

_SOURCE = Path(__file__).parent / "card_probe.c"
_NAME = "card_probe"
# A driver that wakes a card takes seconds; a driver that hangs never ends.
_TIME_LIMIT_S = 60.0
# A desktop on the card does not disturb.
_QUIET_PERCENT = 10
_WITHOUT_CARD = (
    "`sdk build` works without one. "
    "`sdk devices add NAME --ssh USER@HOST --target PROFILE` adds a machine that has one."
)
_LARGEST_NUMBER = 2**31 - 1


@dataclass(frozen=True)
class CardState:
    """One card, and who uses it.

    Attributes:
        driver: version of CUDA that the driver supports, such as '12.4'.
        memory_bytes: of the card.
        processes: other processes that compute on it; None if unknown.
        busy_percent: recent share of time in which it computed; None if unknown.
    """

    card: CudaCard
    driver: str
    memory_bytes: int
    processes: int | None
    busy_percent: int | None

    def describe(self) -> str:
        """Such as 'NVIDIA A100 (compute capability 8.0, 108 multiprocessors), driver for CUDA 12.4'."""
        return (
            f"{self.card.name} (compute capability {self.card.compute_capability}, "
            f"{self.card.multiprocessors} multiprocessors), driver for CUDA {self.driver}"
        )

    @property
    def use_by_others(self) -> str:
        """Who else uses the card, for people; empty if nobody is known to."""
        uses = []
        if self.processes:
            uses.append(f"in use by {self.processes} other process{'' if self.processes == 1 else 'es'}")
        if (self.busy_percent or 0) > _QUIET_PERCENT:
            uses.append(f"busy for {self.busy_percent} % of the time")
        return " and ".join(uses)


@dataclass(frozen=True)
class _NoCard:
    reason: Printable


@dataclass(frozen=True)
class _Driver:
    version: Annotated[int, whole_number(0, _LARGEST_NUMBER)]


@dataclass(frozen=True)
class _Card:
    name: Printable
    major: Annotated[int, whole_number(0, _LARGEST_NUMBER)]
    minor: Annotated[int, whole_number(0, _LARGEST_NUMBER)]
    memory_bytes: Annotated[int, whole_number(0, 2**60)]
    processes: Annotated[int | None, whole_number(0, _LARGEST_NUMBER)]
    busy_percent: Annotated[int | None, whole_number(0, 100)]


@dataclass(frozen=True)
class _Limits:
    multiprocessors: Annotated[int, whole_number(1, _LARGEST_NUMBER)]
    shared_memory_per_multiprocessor_bytes: Annotated[int, whole_number(1024, _LARGEST_NUMBER)]
    threads_per_multiprocessor: Annotated[int, whole_number(32, _LARGEST_NUMBER)]
    blocks_per_multiprocessor: Annotated[int, whole_number(1, _LARGEST_NUMBER)]
    shared_memory_per_block_bytes: Annotated[int, whole_number(1024, _LARGEST_NUMBER)]
    threads_per_block: Annotated[int, whole_number(32, _LARGEST_NUMBER)]
    registers_per_block: Annotated[int, whole_number(32, _LARGEST_NUMBER)]


def build_card_probe(toolchain: CToolchain, cache: ContentCache) -> Path:
    """Return the program, built unless the cache has it.

    Args:
        toolchain: of a C library that can load libraries, so not a static one.

    Raises:
        ToolchainError: the toolchain is missing or fails, or the cache cannot be written.
    """
    return build_c_program([_SOURCE], toolchain, ["-D_POSIX_C_SOURCE=200809L"], cache)


def find_card(transport: Transport, program: Path, device_name: str) -> CardState:
    """Run the program on a device and return the card that Halide's runtime would choose there.

    Raises:
        DeviceError: the device has no driver or no card, or cannot be used.
        DeviceTrouble: PROTOCOL_ERROR, the program's report makes no sense.
    """
    transport.push(program, _NAME)
    outcome = transport.run(_NAME, [], _TIME_LIMIT_S)
    transport.remove(_NAME)
    if outcome.timed_out:
        raise DeviceError(
            f"The CUDA driver of {device_name} did not answer within {_TIME_LIMIT_S:.0f} s.",
            next_step="Run nvidia-smi there to see whether it answers.",
        )
    return choose_card(read_card_report(outcome.output, device_name), device_name)


def read_card_report(output: str, device_name: str) -> list[CardState]:
    """Return the cards in the program's output, which is not trusted; may be empty.

    Raises:
        DeviceError: there is no card; the reason is given.
        DeviceTrouble: PROTOCOL_ERROR, the output is not the program's.
    """
    source = f"The card report of {device_name}"
    events = read_events(output)
    done, reasons, drivers, cards = (
        [event for event in events if event.get("event") == kind] for kind in ("done", "none", "driver", "card")
    )
    if not done:
        raise DeviceTrouble(TroubleKind.PROTOCOL_ERROR, f"{source} has no end.")
    if reasons:
        reason = read_reply(_NoCard, reasons[0], source).reason
        raise DeviceError(f"{device_name} cannot run kernels for NVIDIA cards: {reason}.", next_step=_WITHOUT_CARD)
    version = read_reply(_Driver, drivers[0], source).version if drivers else 0
    driver = f"{version // 1000}.{version % 1000 // 10}"
    return [_state(read_reply(_Card, card, source), read_reply(_Limits, card, source), driver) for card in cards]


def choose_card(cards: Sequence[CardState], device_name: str) -> CardState:
    """Return the card that Halide's runtime takes: the last of those with the most multiprocessors.

    Raises:
        DeviceError: there is none.
    """
    if not cards:
        raise DeviceError(f"{device_name} has no NVIDIA card that answers.", next_step=_WITHOUT_CARD)
    return max(reversed(cards), key=lambda state: state.card.multiprocessors)


def _state(card: _Card, limits: _Limits, driver: str) -> CardState:
    known = CudaCard(name=card.name, compute_capability=f"{card.major}.{card.minor}", **asdict(limits))
    return CardState(known, driver, card.memory_bytes, card.processes, card.busy_percent)
