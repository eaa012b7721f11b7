"""What a device is."""

from __future__ import annotations

from dataclasses import dataclass

from devices.agent.reply_fields import ReplyFields
from devices.agent.session import AgentSession


@dataclass(frozen=True)
class CoreProbe:
    """One core of a device; None where the device does not tell.

    Attributes:
        part: implementer and part of an Arm core, such as '0x41:0xd0b'.
        capacity: the kernel's measure of its speed, 1024 for the fastest of the device.
    """

    core: int
    min_hz: float | None
    max_hz: float | None
    frequency_hz: float | None
    governor: str | None
    part: str | None
    capacity: float | None


@dataclass(frozen=True)
class CacheProbe:
    """One cache of a device.

    Attributes:
        type: 'Data', 'Instruction' or 'Unified'.
        cores: those that share it.
    """

    level: int
    type: str
    size_bytes: int
    cores: tuple[int, ...]


@dataclass(frozen=True)
class Temperature:
    """One of the device's thermometers."""

    zone: int
    type: str | None
    celsius: float


@dataclass(frozen=True)
class FastRpcNode:
    """A device file of FastRPC, the way to a phone's DSP.

    Attributes:
        usable: the user that programs run as there may open it.
    """

    path: str
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

    kernel: str
    machine: str
    os: str | None
    android: bool
    emulated: bool
    cpu_model: str | None
    features: tuple[str, ...]
    memory_bytes: float | None
    cores: tuple[CoreProbe, ...]
    caches: tuple[CacheProbe, ...]
    temperature_zones: tuple[Temperature, ...]
    boot: str
    uptime_s: float
    fastrpc: tuple[FastRpcNode, ...] = ()
    dsp_signature_folder: str | None = None


def probe_device(session: AgentSession) -> DeviceProbe:
    """Ask the device what it is; takes no lease.

    Raises:
        DeviceTrouble: of any kind.
    """
    fields = session.ask("probe", [])
    return DeviceProbe(
        kernel=fields.text("kernel"),
        machine=fields.text("machine"),
        os=fields.optional_text("os"),
        android=fields.flag("android"),
        emulated=fields.flag("emulated"),
        cpu_model=fields.optional_text("cpu_model"),
        features=fields.texts("features"),
        memory_bytes=fields.optional_number("memory_bytes"),
        cores=tuple(_core(row) for row in fields.rows("cores")),
        caches=tuple(_cache(row) for row in fields.rows("caches")),
        temperature_zones=read_temperatures(fields, "temperature_zones"),
        boot=fields.text("boot"),
        uptime_s=fields.number("uptime_s"),
        fastrpc=tuple(FastRpcNode(row.text("path"), row.flag("usable")) for row in fields.rows("fastrpc")),
        dsp_signature_folder=fields.optional_text("dsp_signature_folder"),
    )


def read_temperatures(fields: ReplyFields, key: str) -> tuple[Temperature, ...]:
    """The thermometers of a reply."""
    rows = fields.rows(key)
    return tuple(Temperature(row.integer("zone"), row.optional_text("type"), row.number("celsius")) for row in rows)


def _core(row: ReplyFields) -> CoreProbe:
    return CoreProbe(
        core=row.integer("core"),
        min_hz=row.optional_number("min_hz"),
        max_hz=row.optional_number("max_hz"),
        frequency_hz=row.optional_number("frequency_hz"),
        governor=row.optional_text("governor"),
        part=row.optional_text("part"),
        capacity=row.optional_number("capacity"),
    )


def _cache(row: ReplyFields) -> CacheProbe:
    return CacheProbe(
        level=row.integer("level"),
        type=row.text("type"),
        size_bytes=row.integer("size_bytes"),
        cores=tuple(int(core) for core in row.numbers("shared_cores")),
    )
