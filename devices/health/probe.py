"""What a device is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from devices.agent.reply_fields import ReplyInteger, ReplyText
from devices.agent.session import AgentSession
from targets.values.checks import list_of, table_of
from targets.values.records import record


@dataclass(frozen=True)
class CoreProbe:
    """One core of a device; None where the device does not tell.

    Attributes:
        part: implementer and part of an Arm core, such as '0x41:0xd0b'.
        capacity: the kernel's measure of its speed, 1024 for the fastest of the device.
    """

    core: ReplyInteger
    min_hz: float | None
    max_hz: float | None
    frequency_hz: float | None
    governor: ReplyText | None
    part: ReplyText | None
    capacity: float | None


@dataclass(frozen=True)
class CacheProbe:
    """One cache of a device.

    Attributes:
        type: 'Data', 'Instruction' or 'Unified'.
        cores: those that share it.
    """

    level: ReplyInteger
    type: ReplyText
    size_bytes: ReplyInteger
    cores: tuple[ReplyInteger, ...]


def _caches(value: object) -> tuple[CacheProbe, ...]:
    """The agent calls a cache's cores `shared_cores`."""
    tables = list_of(table_of(lambda item: item))(value)
    renamed = [{("cores" if key == "shared_cores" else key): item for key, item in table.items()} for table in tables]
    return list_of(record(CacheProbe))(renamed)


@dataclass(frozen=True)
class Temperature:
    """One of the device's thermometers."""

    zone: ReplyInteger
    type: ReplyText | None
    celsius: float


@dataclass(frozen=True)
class FastRpcNode:
    """A device file of FastRPC, the way to a phone's DSP.

    Attributes:
        usable: the user that programs run as there may open it.
    """

    path: ReplyText
    usable: bool


@dataclass(frozen=True)
class DeviceProbe:
    """A device's system and hardware; None where it does not tell.

    Attributes:
        kernel: the kernel's release.
        machine: as `uname -m` says.
        os: its name and version, for people.
        emulated: the processor is simulated, as far as it lets on.
        features: the processor's, as /proc/cpuinfo names them.
        boot: identifies the time since the device was last switched on.
        fastrpc: the ways to a Hexagon DSP; empty where there is none.
        dsp_signature_folder: where a signature lies that lets the DSP run programs of one's own.
    """

    kernel: ReplyText
    machine: ReplyText
    os: ReplyText | None
    android: bool
    emulated: bool
    cpu_model: ReplyText | None
    features: tuple[ReplyText, ...]
    memory_bytes: float | None
    cores: tuple[CoreProbe, ...]
    caches: Annotated[tuple[CacheProbe, ...], _caches]
    temperature_zones: tuple[Temperature, ...]
    boot: ReplyText
    uptime_s: float
    fastrpc: tuple[FastRpcNode, ...] = ()
    dsp_signature_folder: ReplyText | None = None


def probe_device(session: AgentSession) -> DeviceProbe:
    """Ask the device what it is; takes no lease.

    Raises:
        DeviceTrouble: of any kind.
    """
    return session.ask("probe", []).record(DeviceProbe)
