"""The state of a device just now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from devices.agent.reply_fields import ReplyInteger, ReplyText
from devices.agent.session import AgentSession
from devices.health.probe import Temperature
from targets.values.checks import list_of, number

_CANARY_REPEATS = 7


@dataclass(frozen=True)
class CoreSense:
    """One core; None where the device does not tell."""

    core: ReplyInteger
    governor: ReplyText | None
    frequency_hz: float | None
    max_hz: float | None


@dataclass(frozen=True)
class DeviceSense:
    """A look at a device.

    Attributes:
        boot: identifies the time since it was last switched on.
        load_1m: the mean number of running processes of the last minute; None where it does not tell.
        free_bytes: of the storage that the SDK works in.
    """

    boot: ReplyText
    uptime_s: float
    load_1m: float | None
    free_bytes: float
    cores: tuple[CoreSense, ...]
    temperatures: tuple[Temperature, ...]


def sense_device(session: AgentSession, cores: Sequence[int]) -> DeviceSense:
    """Look at the device, and at `cores` of it (all where that is empty); takes no lease.

    Raises:
        DeviceTrouble: of any kind.
    """
    return session.ask("sense", [("cores", core_list(cores))]).record(DeviceSense)


def time_canary(session: AgentSession, cores: Sequence[int]) -> float:
    """Seconds of the agent's fixed piece of work on the first of `cores`, the best of several; takes no lease.

    Raises:
        DeviceTrouble: of any kind.
    """
    fields = session.ask("canary", [("cores", core_list(cores)), ("repeats", str(_CANARY_REPEATS))])
    return min(fields.value("times_s", list_of(number())), default=0.0)


def core_list(cores: Sequence[int]) -> str:
    """Cores as the agent takes them."""
    return ",".join(str(core) for core in cores)
