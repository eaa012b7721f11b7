"""The NVIDIA card of a machine, asked for by a small program that runs there and loads the driver if there is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from devices.agent.reply_fields import ReplyFields
from devices.device_trouble import DeviceTrouble, TroubleKind
from devices.timing.runner_events import read_events
from devices.transport import Transport
from targets.errors import DeviceError
from targets.process.content_cache import ContentCache, file_sha256
from targets.profile.cuda_card import CudaCard
from targets.toolchain.c_toolchain import CToolchain
from targets.values.checks import Check, optional, whole_number

_SOURCE = Path(__file__).parent / "card_probe.c"
_FLAGS = ("-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror")
_NAME = "card_probe"
# A driver that wakes a card up takes seconds; one that hangs never ends.
_TIME_LIMIT_S = 60.0


@dataclass(frozen=True)
class CardState:
    """One card, and who uses it.

    Attributes:
        driver: version of CUDA that the driver speaks, such as '12.4'.
        memory_bytes: of the card.
        processes: of others, that compute on it; None where that is not told.
        busy_percent: share of the last moments in which it computed; None where that is not told.
    """

    card: CudaCard
    driver: str
    memory_bytes: int
    processes: int | None
    busy_percent: int | None

    def describe(self) -> str:
        """Such as 'NVIDIA A100 (compute capability 8.0, 108 multiprocessors), driver for CUDA 12.4'."""
        return (
            f"{self.card.name} (compute capability {self.card.capability_text}, "
            f"{self.card.multiprocessors} multiprocessors), driver for CUDA {self.driver}"
        )

    @property
    def use_by_others(self) -> str:
        """Who else uses the card, for people; empty where nobody is known to."""
        uses = []
        if self.processes:
            uses.append(f"in use by {self.processes} other process{'' if self.processes == 1 else 'es'}")
        if (self.busy_percent or 0) > _QUIET_PERCENT:
            uses.append(f"busy for {self.busy_percent} % of the time")
        return " and ".join(uses)


# A desktop on the card is no trouble.
_QUIET_PERCENT = 10


def build_card_probe(toolchain: CToolchain, cache: ContentCache) -> Path:
    """The program, built unless the cache has it.

    Args:
        toolchain: of a C library that loads libraries: not static.

    Raises:
        ToolchainError: the toolchain is missing or fails, or the cache cannot be written.
    """
    key = ["card probe", toolchain.fingerprint(), *_FLAGS, file_sha256(_SOURCE)]

    def build(output: Path) -> None:
        compiled = output.with_suffix(".o")
        toolchain.compile_c(_SOURCE, compiled, [], _FLAGS)
        toolchain.link([compiled], output)
        compiled.unlink()

    return cache.get_or_build(key, ".card_probe", build)


def find_card(transport: Transport, program: Path, device_name: str) -> CardState:
    """Run the program on a device: the card that Halide's runtime would choose there.

    Raises:
        DeviceError: the device has no driver or no card, or cannot be used; DeviceTrouble, PROTOCOL_ERROR, where the
            program's report makes no sense.
    """
    transport.push(program, _NAME)
    outcome = transport.run(_NAME, [], _TIME_LIMIT_S)
    transport.remove(_NAME)
    if outcome.timed_out:
        raise DeviceError(
            f"The CUDA driver of {device_name} does not answer within {_TIME_LIMIT_S:.0f} s.",
            next_step="See whether nvidia-smi answers there.",
        )
    return choose_card(read_card_report(outcome.output, device_name), device_name)


def read_card_report(output: str, device_name: str) -> list[CardState]:
    """The cards in the program's output, which is not trusted; none where the device has none.

    Raises:
        DeviceError: there is no card; the reason is given.
        DeviceTrouble: PROTOCOL_ERROR, the output is not the program's.
    """
    source = f"{device_name}, asked for its cards,"
    events = [ReplyFields(event, source) for event in read_events(output) if "event" in event]
    kinds = [event.text("event") for event in events]
    if "done" not in kinds:
        raise DeviceTrouble(TroubleKind.PROTOCOL_ERROR, f"{source} gave no answer that ends.")
    if "none" in kinds:
        reason = events[kinds.index("none")].text("reason")
        raise DeviceError(f"{device_name} cannot run kernels for NVIDIA cards: {reason}.", next_step=_WITHOUT_CARD)
    version = events[kinds.index("driver")].integer("version") if "driver" in kinds else 0
    driver = f"{version // 1000}.{version % 1000 // 10}"
    return [_state(event, driver) for event, kind in zip(events, kinds, strict=True) if kind == "card"]


def choose_card(cards: Sequence[CardState], device_name: str) -> CardState:
    """The card that Halide's runtime takes: of those with most multiprocessors the last.

    Raises:
        DeviceError: there is none.
    """
    if not cards:
        raise DeviceError(f"{device_name} tells of no NVIDIA card that answers.", next_step=_WITHOUT_CARD)
    return max(reversed(cards), key=lambda state: state.card.multiprocessors)


_WITHOUT_CARD = (
    "`sdk build` works without one; "
    "`sdk devices add NAME --ssh USER@HOST --target PROFILE` adds a machine that has one."
)


def _state(row: ReplyFields, driver: str) -> CardState:
    card = CudaCard(
        name=row.text("name"),
        compute_capability=(row.value("major", _counts(0)), row.value("minor", _counts(0))),
        multiprocessors=row.value("multiprocessors", _counts(1)),
        shared_memory_per_multiprocessor_bytes=row.value("shared_memory_per_multiprocessor_bytes", _counts(1024)),
        threads_per_multiprocessor=row.value("threads_per_multiprocessor", _counts(32)),
        blocks_per_multiprocessor=row.value("blocks_per_multiprocessor", _counts(1)),
        shared_memory_per_block_bytes=row.value("shared_memory_per_block_bytes", _counts(1024)),
        threads_per_block=row.value("threads_per_block", _counts(32)),
        registers_per_block=row.value("registers_per_block", _counts(32)),
    )
    return CardState(
        card=card,
        driver=driver,
        memory_bytes=row.integer("memory_bytes"),
        processes=row.value("processes", optional(whole_number())),
        busy_percent=row.value("busy_percent", optional(whole_number())),
    )


def _counts(least: int) -> Check[int]:
    return whole_number(least, 2**31 - 1)
