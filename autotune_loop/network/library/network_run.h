/* How a network's library runs a layer: its kernel is called with its buffers. The source that is generated for a network
 * includes it, and has the layers and the entries. INPUT_TYPE and OUTPUT_TYPE are what the network's inputs and outputs are
 * of. */
#include <HalideRuntime.h>
#include <stddef.h>
#include <string.h>

enum { MOST_ARGUMENTS = 16, MOST_DIMENSIONS = 6 };

/* What of the network's memory something is in. */
enum storage { IN_INPUT, IN_OUTPUT, IN_WORKSPACE, IN_WEIGHTS };

enum number { OF_FLOAT32, OF_INT8, OF_INT32 };

static const struct halide_type_t types[] = {{halide_type_float, 32, 1}, {halide_type_int, 8, 1}, {halide_type_int, 32, 1}};

struct argument {
    enum storage storage;
    enum number number;
    int index;
    size_t offset_bytes;
    int dimensions; /* 0 for a single number */
    int extents[MOST_DIMENSIONS]; /* the innermost first */
};

struct layer {
    int (*kernel)(void **); /* NULL for what only moves numbers */
    int first_argument, argument_count; /* the output is the last one */
    int pads; /* of what moves numbers: pads a picture, instead of joining the inputs' channels */
    int rows_before, columns_before, padding; /* every byte of what is put around is the last one */
};

struct memory {
    const INPUT_TYPE *const *inputs;
    OUTPUT_TYPE *const *outputs;
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
        buffers[i].host = address(&arguments[i], memory);
        passed[i] = arguments[i].dimensions == 0 ? (void *)buffers[i].host : &buffers[i];
        for (int d = 0; d < arguments[i].dimensions; d++) {
            dimensions[i][d].extent = arguments[i].extents[d];
            dimensions[i][d].stride = stride;
            stride *= arguments[i].extents[d];
        }
        buffers[i].type = types[arguments[i].number];
        buffers[i].dimensions = arguments[i].dimensions;
        buffers[i].dim = dimensions[i];
    }
    return layer->kernel(passed);
}

/* What the innermost dimension takes. */
static size_t row_bytes(const struct argument *argument) {
    return (size_t)argument->extents[0] * types[argument->number].bits / 8;
}

/* Put the channels of each pixel side by side: arguments are of channels and pixels. */
static void join(const struct layer *layer, const struct argument *arguments, const struct memory *memory) {
    const struct argument *output = &arguments[layer->argument_count - 1];
    unsigned char *to = address(output, memory);
    for (const struct argument *input = arguments; input < output; input++) {
        const unsigned char *from = address(input, memory);
        const size_t channels = row_bytes(input), all = row_bytes(output);
        for (size_t pixel = 0; pixel < (size_t)input->extents[1]; pixel++) {
            memcpy(to + pixel * all, from + pixel * channels, channels);
        }
        to += channels;
    }
}

/* Put what stands for 0 around a picture of channels, columns and rows. */
static void pad(const struct layer *layer, const struct argument *arguments, const struct memory *memory) {
    const struct argument *input = &arguments[0], *output = &arguments[1];
    const size_t row = row_bytes(input) * (size_t)input->extents[1];
    const size_t padded = row_bytes(output) * (size_t)output->extents[1];
    const unsigned char *from = address(input, memory);
    unsigned char *to = address(output, memory);
    memset(to, layer->padding, padded * (size_t)output->extents[2]);
    to += (size_t)layer->rows_before * padded + (size_t)layer->columns_before * row_bytes(output);
    for (int y = 0; y < input->extents[2]; y++, to += padded, from += row) memcpy(to, from, row);
}

static int run_layer(const struct layer *layer, const struct argument *arguments, const struct memory *memory) {
    arguments += layer->first_argument;
    if (layer->kernel != NULL) return call_kernel(layer, arguments, memory);
    (layer->pads ? pad : join)(layer, arguments, memory);
    return halide_error_code_success;
}
