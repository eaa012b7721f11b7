"""What a phone says about its Hexagon DSP: whether FastRPC reaches it, and whether it runs programs of one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from devices.health.probe import DeviceProbe
from sdk.checks.machine_checks import MachineCheck
from targets.errors import SdkError


def check_dsp(name: str, probe: Callable[[], DeviceProbe]) -> Iterator[MachineCheck]:
    """Ask a device; what is missing of its DSP is no fault, since its processor is tuned without it.

    Args:
        name: the device's, as the user calls it.
        probe: asks it; raises SdkError.
    """
    try:
        found = probe()
    except SdkError as error:
        yield MachineCheck(f"device {name}", False, error.message, error.next_step)
        return
    yield _fastrpc(name, found)
    yield _signature(name, found)


def _fastrpc(name: str, found: DeviceProbe) -> MachineCheck:
    title = f"FastRPC ({name})"
    usable = [node.path for node in found.fastrpc if node.usable]
    if usable:
        return MachineCheck(title, True, f"{', '.join(usable)} may be opened")
    if not found.fastrpc:
        fix = "Use a phone with a Hexagon DSP, and a kernel with its driver."
        return MachineCheck(title, False, "there is no device file of it: no DSP, or none for programs", fix, False)
    closed = ", ".join(node.path for node in found.fastrpc)
    fix = "Run adb as root on a development device, or use a phone that lets its shell use the DSP."
    return MachineCheck(title, False, f"{closed} may not be opened by the user that programs run as", fix, False)


def _signature(name: str, found: DeviceProbe) -> MachineCheck:
    title = f"DSP signature ({name})"
    if found.dsp_signature_folder:
        return MachineCheck(title, True, f"there is one in {found.dsp_signature_folder}")
    fix = "Sign the device with the Hexagon SDK's signer.py, or use an unsigned process domain where the DSP has one."
    return MachineCheck(title, False, "none: its DSP refuses programs of yours in a signed process domain", fix, False)
