"""A C source with a kernel for every size: it calls the one whose schedule is for the size of the call."""

from __future__ import annotations

from collections.abc import Sequence

from halide_autotune.autotune_loop.shipping.files.guard_header import KernelArgument, c_names, parameters, print_takes
from halide_autotune.autotune_loop.store.size_schedules import SizeSchedule
from halide_autotune.targets.errors import GeneratorError


def any_size_kernel(name: str) -> str:
    """The function name of the kernel with the schedule for all sizes."""
    return f"{name}_at_any_size"


def size_kernel(name: str, extents: str) -> str:
    """The function name of the kernel with the schedule for one size."""
    return f"{name}_at_{extents}"


def print_by_size_source(
    name: str, function: str, signature: Sequence[KernelArgument], used: Sequence[SizeSchedule]
) -> str:
    """The text of the file.

    Args:
        function: what it defines, with the arguments of the kernels.
        used: what is used at each of the run's sizes; they are told apart by one argument.

    Raises:
        GeneratorError: the kernel has no such argument.
    """
    deciding = used[0].argument
    place = next((i for i, one in enumerate(signature) if one.is_buffer and one.name == deciding), None)
    if place is None:
        raise GeneratorError(f"The kernel has no buffer {deciding}, by whose size schedules are to be chosen.")
    sizes = [one.extents.split("x") for one in used]
    own = [(number, size_kernel(name, one.extents)) for number, one in enumerate(used) if one.is_own]
    kernels = [any_size_kernel(name), *(kernel for _, kernel in own)]
    names = c_names(signature)
    passed = ", ".join(names)
    takes = [
        f"/* Whether {kernel} takes these buffers as they are. */\n" + print_takes(f"{kernel}_takes", kernel, signature)
        for _, kernel in own
    ]
    cases = [
        f"        case {number}:\n"
        f"            if ({kernel}_takes({passed})) return {kernel}({passed});\n"
        "            break;\n"
        for number, kernel in own
    ]
    unpacked = [
        f"(struct halide_buffer_t *)args[{i}]" if one.is_buffer else f"*({one.c_type} *)args[{i}]"
        for i, one in enumerate(signature)
    ]
    return (
        _TEMPLATE.replace("@FUNCTION@", function)
        .replace("@ARGUMENT@", deciding)
        .replace("@LISTED@", "\n".join(f" *     {kernel}" for kernel in kernels))
        .replace("@DECLARED@", "\n".join(f"int {kernel}({parameters(signature)});" for kernel in kernels))
        .replace("@ANY@", kernels[0])
        .replace("@COUNT@", str(len(sizes)))
        .replace("@DIMENSIONS@", str(len(sizes[0])))
        .replace("@SIZES@", ", ".join("{" + ", ".join(size) + "}" for size in sizes))
        .replace("@TAKES@", "".join(f"{one}\n" for one in takes))
        .replace("@PARAMETERS@", parameters(signature))
        .replace("@BUFFER@", names[place])
        .replace("@CASES@", "".join(cases))
        .replace("@PASSED@", passed)
        .replace("@UNPACKED@", ", ".join(unpacked))
    )


_TEMPLATE = """\
/* MACHINE GENERATED -- DO NOT EDIT
 *
 * @FUNCTION@ for every size. It calls the kernel whose schedule is for the size that is nearest to that of @ARGUMENT@,
 * or the one for all sizes where that kernel does not take the buffers. Build the generator once as each of
 *
@LISTED@
 *
 * with the schedule that the name says, and link all of them with this file. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "HalideRuntime.h"

#ifdef __cplusplus
extern "C" {
#endif

@DECLARED@
const struct halide_filter_metadata_t *@ANY@_metadata(void);

int @FUNCTION@(@PARAMETERS@);
int @FUNCTION@_argv(void **args);
const struct halide_filter_metadata_t *@FUNCTION@_metadata(void);

@TAKES@/* The number of the nearest size: the product of the ratios of all extents is the smallest. */
static int nearest_size(const struct halide_buffer_t *buffer) {
    static const int32_t sizes[@COUNT@][@DIMENSIONS@] = {@SIZES@};
    int nearest = 0;
    double least = 0;
    if (buffer == NULL || buffer->dimensions != @DIMENSIONS@) return -1;
    for (int i = 0; i < @COUNT@; i++) {
        double distance = 1;
        for (int d = 0; d < @DIMENSIONS@; d++) {
            const double extent = buffer->dim[d].extent, size = sizes[i][d];
            if (extent <= 0) return -1;
            distance *= extent > size ? extent / size : size / extent;
        }
        if (i == 0 || distance < least) {
            nearest = i;
            least = distance;
        }
    }
    return nearest;
}

int @FUNCTION@(@PARAMETERS@) {
    switch (nearest_size(@BUFFER@)) {
@CASES@        default:
            break;
    }
    return @ANY@(@PASSED@);
}

int @FUNCTION@_argv(void **args) {
    return @FUNCTION@(@UNPACKED@);
}

const struct halide_filter_metadata_t *@FUNCTION@_metadata(void) {
    return @ANY@_metadata();
}

#ifdef __cplusplus
}
#endif
"""
