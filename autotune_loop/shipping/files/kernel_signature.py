"""The arguments of a kernel, as the runner lists them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from targets.errors import GeneratorError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_INT32 = range(-(2**31), 2**31)


@dataclass(frozen=True)
class KernelArgument:
    """One argument.

    Attributes:
        name: without the number by which Halide tells equal names apart.
        c_type: 'halide_buffer_t' of a buffer, else the C type of the value.
        is_output: a buffer that is written.
        estimates: least coordinate and extent of each dimension; empty for a scalar, or where there are none.
    """

    name: str
    c_type: str
    is_output: bool
    estimates: tuple[tuple[int, int], ...]

    @property
    def is_buffer(self) -> bool:
        """Whether it is passed as a buffer."""
        return self.c_type == "halide_buffer_t"


def read_signature(events: Sequence[Mapping[str, Any]], kernel: str) -> tuple[KernelArgument, ...]:
    """The arguments of `kernel` among the events of the runner's list.

    Raises:
        GeneratorError: the list has no such kernel or is damaged.
    """
    try:
        listed = next(event for event in events if event["name"] == kernel)
        arguments = tuple(_argument(item) for item in listed["arguments"])
    except (StopIteration, KeyError, TypeError, ValueError) as error:
        raise GeneratorError(f"The runner's list of the arguments of {kernel} cannot be read: {error!r}.") from error
    return arguments


def _argument(item: Mapping[str, Any]) -> KernelArgument:
    name = str(item["name"]).partition("$")[0]
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no argument's name")
    if item["kind"] == "input_scalar":
        return KernelArgument(name, _c_type(str(item["type_code"]), int(item["bits"])), False, ())
    estimates = tuple((_int32(low), _int32(extent)) for low, extent in item.get("estimates") or ())
    return KernelArgument(name, "halide_buffer_t", item["kind"] == "output_buffer", estimates)


def _int32(value: object) -> int:
    if type(value) is not int or value not in _INT32:
        raise ValueError(f"{value!r} is no coordinate")
    return value


def _c_type(code: str, bits: int) -> str:
    """As Halide's headers write it."""
    if code == "handle":
        return "void *"
    if code == "float" and bits in (32, 64):
        return "float" if bits == 32 else "double"
    if code in ("int", "uint") and bits in (1, 8, 16, 32, 64):
        return "bool" if bits == 1 else f"{code}{bits}_t"
    raise ValueError(f"a scalar of type {code}{bits}")
