"""A C header that calls the tuned kernel if its schedule takes the size, and else another kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from halide_autotune.targets.errors import GeneratorError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_INT32 = range(-(2**31), 2**31)


@dataclass(frozen=True)
class KernelArgument:
    """One argument.

    Attributes:
        name: without the number that Halide adds to equal names.
        c_type: 'halide_buffer_t' for a buffer, else the C type of the value.
        is_output: a buffer that is written.
        estimates: minimum and extent of each dimension; empty for a scalar, or without estimates.
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
    """The arguments of `kernel` from the events of the runner's list.

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
        raise ValueError(f"{name!r} is not an argument name")
    if item["kind"] == "input_scalar":
        return KernelArgument(name, _c_type(str(item["type_code"]), int(item["bits"])), False, ())
    estimates = tuple((_int32(low), _int32(extent)) for low, extent in item.get("estimates") or ())
    return KernelArgument(name, "halide_buffer_t", item["kind"] == "output_buffer", estimates)


def _int32(value: object) -> int:
    if type(value) is not int or value not in _INT32:
        raise ValueError(f"{value!r} is not a coordinate")
    return value


def _c_type(code: str, bits: int) -> str:
    """The C type as in Halide's headers."""
    if code == "handle":
        return "void *"
    if code == "float" and bits in (32, 64):
        return "float" if bits == 32 else "double"
    if code in ("int", "uint") and bits in (1, 8, 16, 32, 64):
        return "bool" if bits == 1 else f"{code}{bits}_t"
    raise ValueError(f"a scalar of type {code}{bits}")


_MAXIMUM_DIMENSIONS = 8


def guard_file(name: str) -> str:
    """The file's name."""
    return f"{name}_guard.h"


def print_guard_header(name: str, signature: Sequence[KernelArgument]) -> str:
    """A header with `<name>_guarded`, which takes the arguments of the kernels `<name>_tuned` and `<name>_fallback`."""
    return (
        _TEMPLATE.replace("@TAKES@", print_takes(f"{name}_takes", f"{name}_tuned", signature))
        .replace("@NAME@", name)
        .replace("@PARAMETERS@", parameters(signature))
        .replace("@PASSED@", ", ".join(c_names(signature)))
    )


def c_names(signature: Sequence[KernelArgument]) -> list[str]:
    """A C name for each argument, all different."""
    return [f"a{index}_{re.sub(r'[^A-Za-z0-9_]', '_', argument.name)}" for index, argument in enumerate(signature)]


def parameters(signature: Sequence[KernelArgument]) -> str:
    """The parameters of the kernel as C declares them."""
    return ", ".join(
        f"{'struct halide_buffer_t *' if argument.is_buffer else argument.c_type} {name}".replace("* ", "*")
        for name, argument in zip(c_names(signature), signature, strict=True)
    )


def print_takes(function: str, kernel: str, signature: Sequence[KernelArgument]) -> str:
    """A C function that says whether a kernel takes its arguments as they are.

    A bounds query decides: the kernel is called without memory and answers with the regions that it would touch. That
    computes nothing and is right for any schedule.
    """
    names = c_names(signature)
    buffers = [name for name, argument in zip(names, signature, strict=True) if argument.is_buffer]
    asked = [f"&asked[{buffers.index(name)}]" if name in buffers else name for name in names]
    return (
        _TAKES.replace("@FUNCTION@", function)
        .replace("@KERNEL@", kernel)
        .replace("@PARAMETERS@", parameters(signature))
        .replace("@COUNT@", str(len(buffers)))
        .replace("@DIMENSIONS@", str(_MAXIMUM_DIMENSIONS))
        .replace("@BUFFERS@", ", ".join(buffers))
        .replace("@ASKED@", ", ".join(asked))
    )


_TAKES = """\
static inline bool @FUNCTION@(@PARAMETERS@) {
    struct halide_buffer_t *given[] = {@BUFFERS@};
    struct halide_buffer_t asked[@COUNT@];
    halide_dimension_t dimensions[@COUNT@][@DIMENSIONS@];
    for (int i = 0; i < @COUNT@; i++) {
        if (given[i] == NULL) return false;
        asked[i] = *given[i];
        asked[i].host = NULL;
        asked[i].device = 0;
        asked[i].device_interface = NULL;
        asked[i].dim = dimensions[i];
        if (given[i]->dimensions > @DIMENSIONS@) return false;
        for (int d = 0; d < given[i]->dimensions; d++) {
            dimensions[i][d] = given[i]->dim[d];
        }
    }
    /* Without memory it writes the regions that it would touch into the buffers. */
    if (@KERNEL@(@ASKED@) != 0) return false;
    for (int i = 0; i < @COUNT@; i++) {
        for (int d = 0; d < given[i]->dimensions; d++) {
            const int64_t min = given[i]->dim[d].min, end = min + given[i]->dim[d].extent;
            const int64_t asked_min = dimensions[i][d].min, asked_end = asked_min + dimensions[i][d].extent;
            if (asked_min < min || asked_end > end) return false;
        }
    }
    return true;
}
"""
_TEMPLATE = """\
#ifndef @NAME@_GUARD_H
#define @NAME@_GUARD_H

/* MACHINE GENERATED -- DO NOT EDIT
 *
 * Build the generator twice: as @NAME@_tuned with its shipped schedule, and as @NAME@_fallback with one that takes
 * every size. @NAME@_guarded calls the first wherever it can. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "@NAME@_fallback.h"
#include "@NAME@_tuned.h"
#include "HalideRuntime.h"

/* Whether the tuned kernel takes these buffers as they are. */
@TAKES@
/* The tuned kernel where it takes the size, else the fallback; returns Halide's error code, 0 when all is well. */
static inline int @NAME@_guarded(@PARAMETERS@) {
    if (@NAME@_takes(@PASSED@)) return @NAME@_tuned(@PASSED@);
    return @NAME@_fallback(@PASSED@);
}

#endif
"""
