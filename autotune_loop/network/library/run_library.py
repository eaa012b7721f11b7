"""A network's benchmark on a device: what its layers compute, and how long they take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from halide_autotune.autotune_loop.network.library.build_library import NetworkLibrary
from halide_autotune.autotune_loop.network.memory_plan import tensor_bytes
from halide_autotune.autotune_loop.network.operators import ElementType, Tensor
from halide_autotune.devices.transport import Transport
from halide_autotune.targets.errors import DeviceError
from halide_autotune.targets.process.limited_process import signal_name
from halide_autotune.targets.values.checks import Check, number
from halide_autotune.targets.values.records import Source, record
from halide_autotune.targets.values.texts import printable

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

_INPUT, _OUTPUT, _LAYERS, _REPORT = (
    "network_input.raw",
    "network_output.raw",
    "network_layers.raw",
    "network_report.json",
)
_TYPES = {ElementType.FLOAT32: "<f4", ElementType.INT8: "i1"}
# An emulator takes minutes for a large network.
_LIMIT_S = 3600.0
_LONGEST_LINE_CHARACTERS = 300
_LARGEST_REPORT_BYTES = 16 * 2**20


@dataclass(frozen=True)
class LayerTime:
    """Of one call."""

    name: str
    median_ms: Annotated[float, number(0.0)]


@dataclass(frozen=True)
class NetworkTimes:
    """Of one call of a network, and of each of its layers in order."""

    network: str
    repetitions: int
    threads: int
    median_ms: Annotated[float, number(0.0)]
    layers: tuple[LayerTime, ...]


@dataclass(frozen=True)
class NetworkOutputs:
    """What a network has computed.

    Attributes:
        layers: of each step, in order.
        outputs: of the network.
    """

    layers: tuple[Array, ...]
    outputs: tuple[Array, ...]


def compute_on(
    transport: Transport, program: str, library: NetworkLibrary, inputs: Sequence[Array], folder: Path
) -> NetworkOutputs:
    """Compute a network once on a device, layer by layer.

    Args:
        program: the name of its benchmark on the device.
        inputs: of the types of the network's.
        folder: for files.

    Raises:
        DeviceError: the device cannot be used, or the program fails on it.
    """
    given = folder / _INPUT
    network = library.steps.network
    types = [_TYPES[tensor.element] for tensor in network.inputs]
    given.write_bytes(b"".join(each.astype(type_).tobytes() for each, type_ in zip(inputs, types, strict=True)))
    transport.push(given, _INPUT)
    files = ["--input", _INPUT, "--output", _OUTPUT, "--layer-outputs", _LAYERS]
    _run(transport, program, ["--repetitions", "0", *files])
    layers = _pulled(transport, _LAYERS, [step.output for step in library.steps.steps], folder)
    outputs = _pulled(transport, _OUTPUT, network.outputs, folder)
    return NetworkOutputs(layers, outputs)


def time_on(
    transport: Transport, program: str, library: NetworkLibrary, repetitions: int, threads: int, folder: Path
) -> NetworkTimes:
    """Time a network on a device that has computed it before, in a process of its own.

    Raises:
        DeviceError: the device cannot be used, or the program fails on it.
    """
    numbers = ["--repetitions", str(repetitions), "--threads", str(threads)]
    _run(transport, program, [*numbers, "--input", _INPUT, "--report", _REPORT])
    transport.pull(_REPORT, folder / _REPORT)
    source = Source("The report of the network's benchmark", DeviceError, next_step="Build the network again.")
    check: Check[NetworkTimes] = record(NetworkTimes)
    text = source.read(folder / _REPORT, most_bytes=_LARGEST_REPORT_BYTES)
    times = source.check(check, source.json(text))
    if [layer.name for layer in times.layers] != [step.name for step in library.steps.steps]:
        raise source.refuse("it has other layers than the network.")
    return times


def _run(transport: Transport, program: str, words: Sequence[str]) -> None:
    outcome = transport.run(program, words, _LIMIT_S)
    if outcome.succeeded:
        return
    said = [line for line in outcome.output.splitlines() if line.strip()]
    how = f"exited with code {outcome.exit_code}"
    if outcome.timed_out:
        how = f"did not end within {_LIMIT_S:.0f} s"
    elif outcome.exit_code < 0:
        how = f"was ended by {signal_name(-outcome.exit_code)}"
    told = f": {printable(said[-1])[:_LONGEST_LINE_CHARACTERS]}" if said else "."
    raise DeviceError(f"The network's benchmark {how} on the device{told}")


def _pulled(transport: Transport, name: str, tensors: Sequence[Tensor], folder: Path) -> tuple[Array, ...]:
    import numpy

    transport.pull(name, folder / name)
    content, sizes_bytes = numpy.fromfile(folder / name, numpy.uint8), [tensor_bytes(each) for each in tensors]
    if content.size != sum(sizes_bytes):
        raise DeviceError(f"{name} of the network's benchmark has {content.size} bytes instead of {sum(sizes_bytes)}.")
    parts = numpy.split(content, numpy.cumsum(sizes_bytes)[:-1])
    # A part may begin where no float can.
    return tuple(part.copy().view(_TYPES[each.element]) for part, each in zip(parts, tensors, strict=True))
