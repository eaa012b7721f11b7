"""Read, check and write Halide's `.weights` files.

Layout (Halide, `src/autoschedulers/*/Weights.cpp`; everything little-endian): uint32 signature 0x68776631,
uint32 pipeline feature version (3), uint32 schedule feature version (3), uint32 buffer count (6); then for
each buffer uint32 number of dimensions, uint32 extents, float32 data with dimension 0 fastest.

If a file is missing or damaged, Halide continues with *random* weights; for another version it only warns. Here each is
an error.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import numpy.typing as npt

from halide_autotune.targets.errors import WeightsError, os_error_as
from halide_autotune.targets.process.atomic_write import write_atomically
from halide_autotune.weights.network import Network

SIGNATURE = 0x68776631
FEATURE_VERSION = 3
HEAD1_CHANNELS, HEAD1_WIDTH, HEAD1_TYPES = 8, 40, 7
HEAD2_CHANNELS = 24
CONV1_CHANNELS = 32

_HEADER = struct.Struct("<4I")
_RESTORE_STEP = "Retrain, or restore it from a copy."

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Weights:
    """The parameters of one of Halide's cost-model networks, as read-only float32 arrays.

    The index order is Halide's: dimension 0 is the densest in the file.

    Attributes:
        head1_filter: (8 channels, 40 features, 7 types), of the pipeline features, before the sigmoid.
        head1_bias: (8,).
        head2_filter: (24 channels, schedule features); 39 features for Adams2019, 73 for Anderson2021.
        head2_bias: (24,).
        conv1_filter: (32 channels, 32 inputs); inputs 0-7 are head 1, inputs 8-31 are head 2.
        conv1_bias: (32,).

    Raises:
        WeightsError: an array has another shape, or a value that is not finite.
    """

    head1_filter: FloatArray
    head1_bias: FloatArray
    head2_filter: FloatArray
    head2_bias: FloatArray
    conv1_filter: FloatArray
    conv1_bias: FloatArray

    def __post_init__(self) -> None:
        if not any(np.shape(self.head2_filter) == _shapes(network)["head2_filter"] for network in Network):
            raise WeightsError(
                f"The weights array head2_filter has shape {np.shape(self.head2_filter)}; "
                "expected (24, 39) (Adams2019) or (24, 73) (Anderson2021)."
            )
        for name, shape in _shapes(self.network).items():
            array = np.array(getattr(self, name), dtype=np.float32, order="F")
            if array.shape != shape:
                raise WeightsError(f"The weights array {name} has shape {array.shape}; expected {shape}.")
            if not np.isfinite(array).all():
                raise WeightsError(f"The weights array {name} has NaN or infinity; expected finite numbers.")
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def network(self) -> Network:
        """The network of these weights."""
        count = self.head2_filter.shape[1]
        return next(network for network in Network if network.schedule_feature_count == count)


def read_weights(path: Path) -> Weights:
    """Read and check a `.weights` file.

    Raises:
        WeightsError: the file is missing, unreadable or damaged, or has another feature version.
    """
    with (
        os_error_as(
            WeightsError,
            f"The weights file {path} cannot be read",
            next_step="Check the path. `sdk weights` lists the weights that have a name.",
        ),
        path.open("rb") as file,
    ):
        data = file.read(weights_size_bytes(Network.ANDERSON2021) + 1)
    return parse_weights(data, str(path))


def parse_weights(data: bytes, source: str) -> Weights:
    """Check and parse the bytes of a `.weights` file.

    Args:
        data: the whole file.
        source: where the bytes come from, for errors.

    Raises:
        WeightsError: wrong signature, version or shape; too short or too long; a value that is not finite.
    """
    network = _network_of(data, source)
    offset_bytes = _HEADER.size
    arrays: dict[str, FloatArray] = {}
    for name, shape in _shapes(network).items():
        expected = struct.pack(f"<{len(shape) + 1}I", len(shape), *shape)
        found = data[offset_bytes : offset_bytes + len(expected)]
        if found != expected:
            raise _damaged(source, f"the buffer {name} at byte {offset_bytes} does not have the extents {shape}")
        offset_bytes += len(expected)
        count = int(np.prod(shape))
        values = np.frombuffer(data, dtype="<f4", count=count, offset=offset_bytes)
        if not np.isfinite(values).all():
            raise _damaged(source, f"the buffer {name} has NaN or infinity; expected finite numbers")
        arrays[name] = values.astype(np.float32).reshape(shape, order="F")
        offset_bytes += 4 * count
    return Weights(**arrays)


def format_weights(weights: Weights) -> bytes:
    """Return the bytes of the `.weights` file of these weights."""
    parts = [_HEADER.pack(SIGNATURE, FEATURE_VERSION, FEATURE_VERSION, 6)]
    for field in fields(weights):
        array: FloatArray = getattr(weights, field.name)
        parts.append(struct.pack(f"<{array.ndim + 1}I", array.ndim, *array.shape))
        parts.append(array.astype("<f4").tobytes(order="F"))
    return b"".join(parts)


def write_weights(weights: Weights, path: Path) -> None:
    """Write a `.weights` file atomically.

    Raises:
        WeightsError: the name does not end in `.weights` (Halide would take it for a folder), or it cannot be written.
    """
    if path.suffix != ".weights":
        raise WeightsError(
            f"Weights cannot be written to {path}: Halide reads weights only from names that end in .weights.",
            next_step=f"Name it {path.name}.weights.",
        )
    with os_error_as(
        WeightsError,
        f"The weights file {path} cannot be written",
        next_step="Check that the folder exists and is writable, and that the disk has room.",
    ):
        write_atomically(path, format_weights(weights))


def weights_sha256(weights: Weights) -> str:
    """Return the SHA-256 (hexadecimal) of the `.weights` file of these weights."""
    return hashlib.sha256(format_weights(weights)).hexdigest()


def weights_size_bytes(network: Network) -> int:
    """Return the exact size of a `.weights` file: 17,136 for Adams2019, 20,400 for Anderson2021."""
    buffers = sum(4 * (1 + len(shape) + int(np.prod(shape))) for shape in _shapes(network).values())
    return _HEADER.size + buffers


def _shapes(network: Network) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a network's arrays in file order."""
    return {
        "head1_filter": (HEAD1_CHANNELS, HEAD1_WIDTH, HEAD1_TYPES),
        "head1_bias": (HEAD1_CHANNELS,),
        "head2_filter": (HEAD2_CHANNELS, network.schedule_feature_count),
        "head2_bias": (HEAD2_CHANNELS,),
        "conv1_filter": (CONV1_CHANNELS, HEAD1_CHANNELS + HEAD2_CHANNELS),
        "conv1_bias": (CONV1_CHANNELS,),
    }


def _network_of(data: bytes, source: str) -> Network:
    """Check signature, versions and size, and return the network of that size."""
    if len(data) < _HEADER.size:
        raise _damaged(source, f"it has {len(data)} bytes, fewer than the {_HEADER.size} bytes of the header")
    signature, pipeline_version, schedule_version, buffer_count = _HEADER.unpack_from(data)
    if signature != SIGNATURE:
        raise _damaged(source, f"it starts with {signature:#010x}; expected Halide's signature {SIGNATURE:#010x}")
    for kind, version in (("pipeline", pipeline_version), ("schedule", schedule_version)):
        if version != FEATURE_VERSION:
            raise WeightsError(
                f"The weights in {source} are for version {version} of the {kind} features; "
                f"expected version {FEATURE_VERSION}.",
                next_step="Retrain the weights with this version of Halide.",
            )
    if buffer_count != 6:
        raise _damaged(source, f"it has {buffer_count} buffers; expected 6")
    for network in Network:
        if len(data) == weights_size_bytes(network):
            return network
    sizes = " or ".join(f"{weights_size_bytes(network):,} ({network})" for network in Network)
    raise _damaged(source, f"it has {len(data):,} bytes; expected {sizes}")


def _damaged(source: str, what: str) -> WeightsError:
    return WeightsError(f"The weights file {source} is damaged: {what}.", next_step=_RESTORE_STEP)
