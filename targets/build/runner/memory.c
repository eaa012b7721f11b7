/* Allocates buffers: aligned, with guard bytes on both sides that reveal a write outside the buffer. */
#include <stdlib.h>
#include <string.h>

#include "runner.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

/* The guard in front keeps the alignment for wide vectors; kernels that load whole vectors at the end of a row read the
 * guard behind. */
enum { ALIGNMENT_BYTES = 128, GUARD_BYTES = 256, GUARD_VALUE = 0xc7 };

/* More elements than any real buffer has; keeps the arithmetic below far from overflow. */
#define MAX_ELEMENTS ((int64_t)1 << 40)

#ifdef __GLIBC__
/* The greatest block that glibc takes from its heaps if it is asked to: half a heap of a thread. */
enum { LARGEST_HEAP_BLOCK_BYTES = sizeof(long) == 8 ? 32 << 20 : 512 << 10 };
#endif

void keep_freed_memory(void) {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, LARGEST_HEAP_BLOCK_BYTES);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

size_t element_bytes(struct halide_type_t type) {
    return ((size_t)type.bits + 7) / 8;
}

uint64_t row_count(const struct argument *argument, const halide_dimension_t *region) {
    uint64_t rows = 1;
    for (int d = 1; d < argument->meta->dimensions; d++) {
        rows *= (uint64_t)region[d].extent;
    }
    return row_width(argument, region) > 0 ? rows : 0;
}

int64_t row_width(const struct argument *argument, const halide_dimension_t *region) {
    return argument->meta->dimensions > 0 ? region[0].extent : 1;
}

int64_t row_step_bytes(const struct argument *argument) {
    const int64_t stride = argument->meta->dimensions > 0 ? argument->dim[0].stride : 1;
    return stride * (int64_t)element_bytes(argument->meta->type);
}

void row_coordinates(const struct argument *argument, const halide_dimension_t *region, uint64_t row,
                     int32_t *coordinates) {
    for (int d = 0; d < argument->meta->dimensions; d++) {
        coordinates[d] = region[d].min;
        if (d > 0) {
            coordinates[d] += (int32_t)(row % (uint64_t)region[d].extent);
            row /= (uint64_t)region[d].extent;
        }
    }
}

uint8_t *row_address(const struct argument *argument, const halide_dimension_t *region, uint64_t row,
                     int32_t *coordinates) {
    int64_t offset = 0;
    row_coordinates(argument, region, row, coordinates);
    for (int d = 0; d < argument->meta->dimensions; d++) {
        offset += ((int64_t)coordinates[d] - argument->dim[d].min) * argument->dim[d].stride;
    }
    return argument->data + offset * (int64_t)element_bytes(argument->meta->type);
}

static size_t needed_bytes(const struct argument *argument) {
    int64_t elements = 1;
    bool empty = false;
    for (int d = 0; d < argument->meta->dimensions; d++) {
        const halide_dimension_t *dim = &argument->dim[d];
        if (dim->extent <= 0) {
            empty = true;
            continue;
        }
        elements += (int64_t)(dim->extent - 1) * dim->stride;
        if (elements > MAX_ELEMENTS) {
            fail(EXIT_RESOURCES, "memory", "The buffer '%s' would have more than 2^40 elements.", argument->meta->name);
        }
    }
    const uint64_t bytes = empty ? 0 : (uint64_t)elements * element_bytes(argument->meta->type);
    if (bytes > SIZE_MAX / 2) {
        fail(EXIT_RESOURCES, "memory", "The buffer '%s' needs %llu bytes, more than this device can address.",
             argument->meta->name, (unsigned long long)bytes);
    }
    return (size_t)bytes;
}

void allocate_buffer(struct argument *argument) {
    argument->data_bytes = needed_bytes(argument);
    const size_t all_bytes = argument->data_bytes + 2 * GUARD_BYTES + ALIGNMENT_BYTES;
    uint8_t *block = calloc(1, all_bytes);
    if (!block) {
        fail(EXIT_RESOURCES, "memory", "Not enough memory for the buffer '%s' of %llu bytes.", argument->meta->name,
             (unsigned long long)argument->data_bytes);
    }
    const uintptr_t first = (uintptr_t)block + GUARD_BYTES;
    argument->data = block + GUARD_BYTES + (ALIGNMENT_BYTES - first % ALIGNMENT_BYTES) % ALIGNMENT_BYTES;
    memset(argument->data - GUARD_BYTES, GUARD_VALUE, GUARD_BYTES);
    memset(argument->data + argument->data_bytes, GUARD_VALUE, GUARD_BYTES);
    argument->buffer.host = argument->data;
}

void fill_output(struct argument *argument, uint8_t pattern) {
    memset(argument->data, pattern, argument->data_bytes);
    /* A kernel on a GPU must find the pattern, too, where it writes nothing. */
    argument->buffer.flags |= halide_buffer_flag_host_dirty;
}

static bool guard_is_damaged(const uint8_t *guard) {
    for (int i = 0; i < GUARD_BYTES; i++) {
        if (guard[i] != GUARD_VALUE) return true;
    }
    return false;
}

void check_guards(const struct invocation *invocation) {
    for (int i = 0; i < invocation->count; i++) {
        const struct argument *argument = &invocation->arguments[i];
        if (!is_buffer(argument)) continue;
        const bool before = guard_is_damaged(argument->data - GUARD_BYTES);
        if (before || guard_is_damaged(argument->data + argument->data_bytes)) {
            fail(EXIT_WRONG_OUTPUT, "overrun", "The kernel '%s' wrote %s the memory of the buffer '%s'.",
                 invocation->kernel->name, before ? "before" : "behind", argument->meta->name);
        }
    }
}
