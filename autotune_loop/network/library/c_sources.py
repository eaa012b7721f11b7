"""The C sources of a network's library: its header, the layers with the entries, its weights, and its benchmark."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from halide_autotune.autotune_loop.network.library.steps import Argument, Pads, Step, Steps
from halide_autotune.autotune_loop.network.memory_plan import ALIGNMENT_BYTES, tensor_bytes
from halide_autotune.autotune_loop.network.operators import ElementType, Network, Shape, Tensor
from halide_autotune.targets.build.c_text import c_string

WEIGHTS_FILE = "weights.bin"
_LONGEST_NAME_CHARACTERS = 80
_C_TYPES = {ElementType.FLOAT32: "float", ElementType.INT8: "int8_t"}


@dataclass(frozen=True)
class CSources:
    """Texts of sources; the weights' takes the file `WEIGHTS_FILE` from an include folder."""

    header: str
    layers: str
    weights: str
    benchmark: str


def c_name(title: str) -> str:
    """A model's name as C names and files begin with it: 'mobilenetv2_1.00_224' is mobilenetv2_1_00_224."""
    name = re.sub(r"\W+", "_", title, flags=re.ASCII).strip("_")[:_LONGEST_NAME_CHARACTERS]
    return name if name[:1].isalpha() else f"network_{name}".rstrip("_")


def kernel_name(name: str, task: int) -> str:
    """The symbol of a task's kernel."""
    return f"{name}_kernel_{task}"


def entry(network: Network) -> str:
    """The C declaration of what computes a network, without a semicolon."""
    return f"int {c_name(network.name)}_run({_ends(network)}, void *workspace)"


def c_sources(steps: Steps, halide_target: str) -> CSources:
    """All sources of a network."""
    name = c_name(steps.network.name)
    return CSources(_header(name, steps, halide_target), _layers(name, steps), _weights(name), _benchmark(name, steps))


def _header(name: str, steps: Steps, halide_target: str) -> str:
    network, guard = steps.network, f"{name.upper()}_H"
    told = [*_told("inputs", network.inputs), *_told("outputs", network.outputs)]
    shapes = "".join(f" *     {line}\n" for line in told)
    # Layers' names may have whatever ends a comment.
    title = re.sub(r"[^\w.+-]", "_", network.name, flags=re.ASCII)
    return f"""/* The network {title} for {halide_target}, made by `sdk network build`.
 *
{shapes} *
 * The last extent is the innermost. Link it with -lpthread -ldl -lm. */
#ifndef {guard}
#define {guard}

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

#define {name}_INPUT_COUNT {len(network.inputs)}
#define {name}_OUTPUT_COUNT {len(network.outputs)}
#define {name}_LAYER_COUNT {len(steps.steps)}
#define {name}_WORKSPACE_BYTES {steps.memory.workspace_bytes}
#define {name}_WORKSPACE_ALIGNMENT {ALIGNMENT_BYTES}

/* How many numbers each of them has, and how many bytes these take. */
extern const size_t {name}_input_sizes[], {name}_output_sizes[], {name}_layer_sizes[];
extern const size_t {name}_input_bytes[], {name}_output_bytes[], {name}_layer_bytes[];
extern const char *const {name}_layer_names[];

/* Compute the network once. The workspace is the caller's, needs no content, and may be NULL where it has no bytes;
 * calls with different workspaces may run at the same time. Returns 0, or the code of Halide's error
 * (halide_error_code_t of HalideRuntime.h). Halide's own handler of errors ends the process before that:
 * halide_set_error_handler sets another. */
{entry(network)};

/* The same, one layer at a time: to time layers, or to look at what they compute. They run in order, from 0. */
int {name}_run_layer(int layer, {_ends(network)}, void *workspace);

/* What a layer has computed; a later one may write there. */
const void *{name}_layer_output(int layer, {_type(network.outputs)} *const outputs[], const void *workspace);

#ifdef __cplusplus
}}
#endif

#endif
"""


def _ends(network: Network) -> str:
    return f"const {_type(network.inputs)} *const inputs[], {_type(network.outputs)} *const outputs[]"


def _type(tensors: Sequence[Tensor]) -> str:
    """What all are of; void where they differ."""
    first, *others = {_C_TYPES[each.element] for each in tensors}
    return "void" if others else first


def _types(network: Network) -> str:
    """What the sources that are the same for all networks take."""
    return f"#define INPUT_TYPE {_type(network.inputs)}\n#define OUTPUT_TYPE {_type(network.outputs)}"


def _told(what: str, tensors: Sequence[Tensor]) -> list[str]:
    lines = []
    for index, each in enumerate(tensors):
        numbers = f"{math.prod(each.shape)} numbers of the type {_C_TYPES[each.element]}"
        known = each.quantization
        meaning = "" if known is None else f"; n stands for {known.scale!r} * (n - ({known.zero_point}))"
        lines.append(f"{what}[{index}]: {_shape(each.shape)}, {numbers}{meaning}")
    return lines


def _shape(shape: Shape) -> str:
    return "x".join(map(str, shape))


def _layers(name: str, steps: Steps) -> str:
    kernels = sorted({step.task for step in steps.steps if step.task is not None})
    network, done = steps.network, steps.steps
    declared = "".join(f"int {kernel_name(name, each)}_argv(void **arguments);\n" for each in kernels)
    arguments = "".join(f"    {_argument(each)},\n" for step in done for each in step.arguments)
    rows, first = "", 0
    for step in done:
        rows += f"    {_layer(name, step, first)},\n"
        first += len(step.arguments)
    names = "".join(f"    {c_string(step.name)},\n" for step in done)
    return f"""#include <HalideRuntime.h>
#include "{name}.h"

{_types(network)}
#include "network_run.h"

{declared}
extern const unsigned char {name}_weights[];

const size_t {name}_input_sizes[] = {_sizes(network.inputs)};
const size_t {name}_output_sizes[] = {_sizes(network.outputs)};
const size_t {name}_layer_sizes[] = {_sizes(step.output for step in done)};
const size_t {name}_input_bytes[] = {_bytes(network.inputs)};
const size_t {name}_output_bytes[] = {_bytes(network.outputs)};
const size_t {name}_layer_bytes[] = {_bytes(step.output for step in done)};
const char *const {name}_layer_names[] = {{
{names}}};

static const struct argument arguments[] = {{
{arguments}}};

static const struct layer layers[] = {{
{rows}}};

int {name}_run_layer(int layer, {_ends(network)}, void *workspace) {{
    const struct memory memory = {{inputs, outputs, workspace, {name}_weights}};
    if (layer < 0 || layer >= {name}_LAYER_COUNT) return halide_error_code_generic_error;
    if (inputs == NULL || outputs == NULL || (workspace == NULL && {name}_WORKSPACE_BYTES > 0)) {{
        return halide_error_code_buffer_argument_is_null;
    }}
    return run_layer(&layers[layer], arguments, &memory);
}}

{entry(network)} {{
    int error = 0;
    for (int layer = 0; layer < {name}_LAYER_COUNT && error == 0; layer++) {{
        error = {name}_run_layer(layer, inputs, outputs, workspace);
    }}
    return error;
}}

const void *{name}_layer_output(int layer, {_type(network.outputs)} *const outputs[], const void *workspace) {{
    const struct memory memory = {{NULL, outputs, (void *)workspace, {name}_weights}};
    const struct layer *found = &layers[layer];
    return address(&arguments[found->first_argument + found->argument_count - 1], &memory);
}}
"""


def _sizes(tensors: Iterable[Tensor]) -> str:
    return "{" + ", ".join(str(math.prod(each.shape)) for each in tensors) + "}"


def _bytes(tensors: Iterable[Tensor]) -> str:
    return "{" + ", ".join(str(tensor_bytes(each)) for each in tensors) + "}"


def _argument(argument: Argument) -> str:
    place, extents = argument.place, argument.extents
    where = f"IN_{place.storage.name}, OF_{argument.type.upper()}, {place.index}, {place.offset_bytes}"
    return f"{{{where}, {len(extents)}, {{{', '.join(map(str, extents)) or 0}}}}}"


def _layer(name: str, step: Step, first: int) -> str:
    kernel = "NULL" if step.task is None else f"{kernel_name(name, step.task)}_argv"
    pads = step.pads or Pads(0, 0, 0)
    padded = f"{int(step.pads is not None)}, {pads.rows}, {pads.columns}, {pads.value}"
    return f"{{{kernel}, {first}, {len(step.arguments)}, {padded}}}"


def _weights(name: str) -> str:
    # As an array in C, megabytes take the compiler minutes.
    return f"""__asm__(".section .rodata\\n"
        ".balign {ALIGNMENT_BYTES}\\n"
        ".globl {name}_weights\\n"
        ".hidden {name}_weights\\n"
        "{name}_weights:\\n"
        ".incbin \\"{WEIGHTS_FILE}\\"\\n"
        ".byte 0\\n");
"""


def _benchmark(name: str, steps: Steps) -> str:
    return f"""#include "{name}.h"

{_types(steps.network)}
#define NETWORK(part) {name}_##part
static const char {name}_title[] = {c_string(steps.network.name)};

#include "network_bench.h"
"""
