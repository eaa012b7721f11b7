"""Operators by their shapes alone, from a `.toml` file: what a paper or a library is about, without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from halide_autotune.autotune_loop.network.operators import Activation, Network, Operator, OperatorKind, Shape, Tensor
from halide_autotune.targets.errors import NetworkError
from halide_autotune.targets.values.checks import one_line, one_of, row_of, whole_number
from halide_autotune.targets.values.records import Example, Source, record

_SIZE = whole_number(1, 2**20)
_PICTURE = row_of(_SIZE, _SIZE, _SIZE)
_WINDOW = row_of(_SIZE, _SIZE)
# Those without a slope.
_ACTIVATION = one_of(each.value for each in Activation if each not in (Activation.LEAKY_RELU, Activation.ELU))


@dataclass(frozen=True, kw_only=True)
class _Window:
    """Attributes: `padding` is put around the picture on each side; None keeps the size of one with stride 1."""

    input: Annotated[Shape, _PICTURE, Example("input = [56, 56, 64]")]
    kernel: Annotated[Shape, _WINDOW] = (3, 3)
    stride: Annotated[int, _SIZE] = 1
    dilation: Annotated[int, _SIZE] = 1
    padding: Annotated[int | None, whole_number(0, 2**10)] = None
    has_bias: bool = True
    activation: Annotated[str, _ACTIVATION] = Activation.NONE.value
    name: Annotated[str | None, one_line] = None


@dataclass(frozen=True, kw_only=True)
class _Convolution(_Window):
    channels_out: Annotated[int, _SIZE]
    groups: Annotated[int, _SIZE] = 1


@dataclass(frozen=True, kw_only=True)
class _Depthwise(_Window):
    multiplier: Annotated[int, _SIZE] = 1


@dataclass(frozen=True)
class _Product:
    """A matrix of rows × depth with one of depth × columns, which lies as the target takes it; one row is a dense
    layer."""

    depth: Annotated[int, _SIZE]
    columns: Annotated[int, _SIZE]
    rows: Annotated[int, _SIZE] = 1
    has_bias: bool = False
    activation: Annotated[str, _ACTIVATION] = Activation.NONE.value
    name: Annotated[str | None, one_line] = None


@dataclass(frozen=True)
class _Listed:
    convolution: tuple[_Convolution, ...] = ()
    depthwise_convolution: tuple[_Depthwise, ...] = ()
    product: tuple[_Product, ...] = ()


def read_operator_list(path: Path) -> Network:
    """The operators of a list as a network, in which none takes what another one makes.

    Raises:
        NetworkError: the file cannot be read, or a key of it is wrong; the message names it.
    """
    source = Source(path, NetworkError, next_step="docs/networks.md has an example of such a list.")
    try:
        listed = source.check(record(_Listed), source.toml(source.read(path)))
    except FileNotFoundError as error:
        raise NetworkError(f"There is no list of operators {path}.", next_step="Check the path.") from error
    operators: list[Operator] = []
    tables: Mapping[str, Sequence[_Convolution | _Depthwise | _Product]] = {
        OperatorKind.CONVOLUTION.value: listed.convolution,
        OperatorKind.DEPTHWISE_CONVOLUTION.value: listed.depthwise_convolution,
        "product": listed.product,
    }
    for table, entries in tables.items():
        for number, each in enumerate(entries, 1):
            place = each.name or f"{table}_{number}"
            if any(place in other.places for other in operators):
                raise source.refuse(f"two operators have the name {place!r}.")
            made = _product(each, place) if isinstance(each, _Product) else _window(each, place, source)
            operators.append(made)
    if not operators:
        raise source.refuse(f"there are no operators; expected tables such as [[{OperatorKind.CONVOLUTION.value}]].")
    inputs, outputs = (each.inputs[0] for each in operators), (each.output for each in operators)
    return Network(path.stem, tuple(inputs), tuple(outputs), tuple(operators))


def _window(entry: _Convolution | _Depthwise, place: str, source: Source) -> Operator:
    rows_columns, channels = entry.input[:2], entry.input[2]
    settings: dict[str, int] = {"has_bias": int(entry.has_bias)}
    size = []
    for axis, extent, kernel in zip(("rows", "columns"), rows_columns, entry.kernel, strict=True):
        reach = entry.dilation * (kernel - 1) + 1
        # Without padding that is given, at stride 1 it is as large as before; an even kernel has one more after it.
        before = (reach - 1) // 2 if entry.padding is None else entry.padding
        padded = extent + reach - 1 if entry.padding is None else extent + 2 * before
        if padded < reach:
            raise source.refuse(f"the kernel of {place} is larger than its picture.")
        size.append((padded - reach) // entry.stride + 1)
        # What is not read is not padded.
        after = max(0, (size[-1] - 1) * entry.stride + reach - extent - before)
        settings |= {f"kernel_{axis}": kernel, f"stride_{axis}": entry.stride, f"dilation_{axis}": entry.dilation}
        settings |= {f"pad_{axis}_before": before, f"pad_{axis}_after": after}
    if isinstance(entry, _Convolution):
        if channels % entry.groups or entry.channels_out % entry.groups:
            raise source.refuse(f"the channels of {place} cannot be divided into {entry.groups} groups.")
        kind, made = OperatorKind.CONVOLUTION, entry.channels_out
        settings["groups"] = entry.groups
    else:
        kind, made = OperatorKind.DEPTHWISE_CONVOLUTION, channels * entry.multiplier
        settings["multiplier"] = entry.multiplier
    return _operator(kind, entry, place, entry.input, (*size, made), settings)


def _product(entry: _Product, place: str) -> Operator:
    settings = {"has_bias": int(entry.has_bias)}
    if entry.rows == 1:
        return _operator(OperatorKind.DENSE, entry, place, (entry.depth,), (entry.columns,), settings)
    # Each row is a pixel.
    for axis in ("rows", "columns"):
        settings |= {f"{what}_{axis}": 1 for what in ("kernel", "stride", "dilation")}
        settings |= {f"pad_{axis}_{end}": 0 for end in ("before", "after")}
    shapes = (1, entry.rows, entry.depth), (1, entry.rows, entry.columns)
    return _operator(OperatorKind.CONVOLUTION, entry, place, *shapes, settings | {"groups": 1})


def _operator(
    kind: OperatorKind, entry: _Window | _Product, place: str, source: Shape, made: Shape, settings: Mapping[str, int]
) -> Operator:
    ends = Tensor(f"{place} in", source), Tensor(f"{place} out", made)
    return Operator(kind, (place,), ends[:1], ends[1], settings, Activation(entry.activation))
