/* How a network's library runs a layer: its kernel is called with its buffers. The source that is generated for a network
 * includes it, and has the layers and the entries. */
#include <HalideRuntime.h>
#include <stddef.h>
#include <string.h>

enum { MOST_ARGUMENTS = 5, MOST_DIMENSIONS = 4 };

/* What of the network's memory something is in. */
enum storage { IN_INPUT, IN_OUTPUT, IN_WORKSPACE, IN_WEIGHTS };

struct argument {
    enum storage storage;
    int index;
    size_t offset_bytes;
    int dimensions;
    int extents[MOST_DIMENSIONS]; /* the innermost first */
};

struct layer {
    int (*kernel)(void **); /* NULL for what only moves numbers */
    int first_argument, argument_count; /* the output is the last one */
    int pads; /* of what moves numbers: pads a picture, instead of joining the inputs' channels */
    int rows_before, columns_before;
};

struct memory {
    const float *const *inputs;
    float *const *outputs;
    unsigned char *workspace;
    const unsigned char *weights;
};

static void *address(const struct argument *argument, const struct memory *memory) {
    switch (argument->storage) {
    case IN_INPUT: return (void *)memory->inputs[argument->index];
    case IN_OUTPUT: return memory->outputs[argument->index];
    case IN_WORKSPACE: return memory->workspace + argument->offset_bytes;
    default: return (void *)(memory->weights + argument->offset_bytes);
    }
}

static int call_kernel(const struct layer *layer, const struct argument *arguments, const struct memory *memory) {
    halide_buffer_t buffers[MOST_ARGUMENTS];
    halide_dimension_t dimensions[MOST_ARGUMENTS][MOST_DIMENSIONS];
    void *passed[MOST_ARGUMENTS];
    memset(buffers, 0, sizeof buffers);
    memset(dimensions, 0, sizeof dimensions);
    for (int i = 0; i < layer->argument_count; i++) {
        int stride = 1;
        for (int d = 0; d < arguments[i].dimensions; d++) {
            dimensions[i][d].extent = arguments[i].extents[d];
            dimensions[i][d].stride = stride;
            stride *= arguments[i].extents[d];
        }
        buffers[i].host = address(&arguments[i], memory);
        buffers[i].type.code = halide_type_float;
        buffers[i].type.bits = 32;
        buffers[i].type.lanes = 1;
        buffers[i].dimensions = arguments[i].dimensions;
        buffers[i].dim = dimensions[i];
        passed[i] = &buffers[i];
    }
    return layer->kernel(passed);
}

/* Put the channels of each pixel side by side: arguments are of channels and pixels. */
static void join(const struct layer *layer, const struct argument *arguments, const struct memory *memory) {
    const struct argument *output = &arguments[layer->argument_count - 1];
    float *to = address(output, memory);
    for (const struct argument *input = arguments; input < output; input++) {
        const float *from = address(input, memory);
        const size_t channels = (size_t)input->extents[0], all = (size_t)output->extents[0];
        for (size_t pixel = 0; pixel < (size_t)input->extents[1]; pixel++) {
            memcpy(to + pixel * all, from + pixel * channels, channels * sizeof *to);
        }
        to += channels;
    }
}

/* Put zeros around a picture of channels, columns and rows. */
static void pad(const struct layer *layer, const struct argument *arguments, const struct memory *memory) {
    const struct argument *input = &arguments[0], *output = &arguments[1];
    const size_t row = (size_t)input->extents[0] * (size_t)input->extents[1];
    const size_t padded = (size_t)output->extents[0] * (size_t)output->extents[1];
    const float *from = address(input, memory);
    float *to = address(output, memory);
    memset(to, 0, padded * (size_t)output->extents[2] * sizeof *to);
    to += (size_t)layer->rows_before * padded + (size_t)layer->columns_before * (size_t)output->extents[0];
    for (int y = 0; y < input->extents[2]; y++, to += padded, from += row) memcpy(to, from, row * sizeof *to);
}

static int run_layer(const struct layer *layer, const struct argument *arguments, const struct memory *memory) {
    arguments += layer->first_argument;
    if (layer->kernel != NULL) return call_kernel(layer, arguments, memory);
    (layer->pads ? pad : join)(layer, arguments, memory);
    return halide_error_code_success;
}
