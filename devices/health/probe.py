"""What a device is, and its state now. None stands for what a device does not tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from halide_autotune.devices.agent.protocol import FreeBytes, Printable, core_list
from halide_autotune.devices.agent.session import AgentSession
from halide_autotune.targets.values.checks import number, whole_number

# What no device has more of; values beyond are a fault of the reply.
_Core = Annotated[int, whole_number(0, 4095)]
_hz = number(0, 1e12)
_capacity = number(0, 1e9)
# Some kernels print -1 as an unsigned number of 64 bits: a thermometer that is none costs no device.
_Celsius = Annotated[float, number(-1e17, 1e17)]


@dataclass(frozen=True)
class CoreSense:
    """One core of a device.

    Attributes:
        max_hz: the highest frequency of its clock.
        capacity: the kernel's measure of its speed, 1024 for the device's fastest.
    """

    core: _Core
    governor: Printable | None
    max_hz: Annotated[float | None, _hz]
    capacity: Annotated[float | None, _capacity] = None


@dataclass(frozen=True)
class CacheProbe:
    """One cache of a device.

    Attributes:
        type: 'Data', 'Instruction' or 'Unified'.
        shared_cores: the cores that share it.
    """

    level: Annotated[int, whole_number(0, 99)]
    type: Printable
    size_bytes: Annotated[int, whole_number(0, 2**40)]
    shared_cores: tuple[_Core, ...]


@dataclass(frozen=True)
class Temperature:
    """One of the device's thermometers."""

    zone: Annotated[int, whole_number(0, 10_000)]
    type: Printable | None
    celsius: _Celsius


@dataclass(frozen=True)
class FastRpcNode:
    """A device file of FastRPC, which leads to a phone's DSP.

    Attributes:
        usable: the user that programs run as may open it.
    """

    path: Printable
    usable: bool


@dataclass(frozen=True)
class DspProbe:
    """A phone's Hexagon DSP.

    Attributes:
        nodes: the ways to it; empty where there is none.
        signature_folder: the folder of a signature that lets the DSP run unsigned programs.
    """

    nodes: tuple[FastRpcNode, ...] = ()
    signature_folder: Printable | None = None


@dataclass(frozen=True)
class DeviceProbe:
    """A device's system and hardware.

    Attributes:
        kernel: the kernel's release.
        machine: as `uname -m` prints.
        os: its name and version, for people.
        emulated: the processor is simulated, as far as it shows.
        boot: identifies the time since the device was last switched on.
    """

    kernel: Printable
    machine: Printable
    os: Printable | None
    android: bool
    emulated: bool
    cpu_model: Printable | None
    memory_bytes: Annotated[float | None, number(0, 2.0**60)]
    cores: tuple[CoreSense, ...]
    caches: tuple[CacheProbe, ...]
    temperature_zones: tuple[Temperature, ...]
    boot: Printable
    dsp: DspProbe = DspProbe()


@dataclass(frozen=True)
class DeviceSense:
    """The state of a device now.

    Attributes:
        boot: identifies the time since it was last switched on.
        load_1m: the mean number of running processes of the last minute.
        free_bytes: of the storage that the SDK works in.
    """

    boot: Printable
    uptime_s: Annotated[float, number(0, 1e11)]
    load_1m: Annotated[float | None, number(0, 1e9)]
    free_bytes: FreeBytes
    cores: tuple[CoreSense, ...]
    temperatures: tuple[Temperature, ...]


def probe_device(session: AgentSession) -> DeviceProbe:
    """Ask the device what it is; takes no lease.

    Raises:
        DeviceTrouble: of any kind.
    """
    return session.ask_for(DeviceProbe, "probe", [])


def sense_device(session: AgentSession, cores: Sequence[int]) -> DeviceSense:
    """Ask for the state of the device and of `cores` (all if empty); takes no lease.

    Raises:
        DeviceTrouble: of any kind.
    """
    return session.ask_for(DeviceSense, "sense", [("cores", core_list(cores))])
