/* What Halide's runtime for a standalone Hexagon (noos) leaves to its surroundings, whatever these are: linked beside
 * that runtime and the companion of a system, or of none.
 *
 * Halide's own definitions are weak: those below win. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "HalideRuntime.h"

enum { VECTOR_BYTES = 128 };

static halide_error_handler_t error_handler;

halide_error_handler_t halide_set_error_handler(halide_error_handler_t handler) {
    const halide_error_handler_t before = error_handler;
    error_handler = handler;
    return before;
}

void halide_error(void *user_context, const char *message) {
    if (error_handler) {
        error_handler(user_context, message);
    } else {
        fprintf(stderr, "%s\n", message);
        abort();
    }
}

void halide_print(void *user_context, const char *message) {
    (void)user_context;
    fputs(message, stderr);
}

/* Tightly coupled memory is ordinary memory here. It is aligned by hand: Halide's own program for Qualcomm's simulator
 * says that memalign cannot be relied on there. */
void *HAP_request_VTCM(unsigned int bytes, unsigned int single_page) {
    (void)single_page;
    char *block = malloc((size_t)bytes + VECTOR_BYTES + sizeof block);
    if (!block) return NULL;
    const uintptr_t first = (uintptr_t)block + sizeof block;
    void **memory = (void **)((first + VECTOR_BYTES - 1) / VECTOR_BYTES * VECTOR_BYTES);
    memory[-1] = block;
    return memory;
}

int HAP_release_VTCM(void *memory) {
    if (memory) free(((void **)memory)[-1]);
    return 0;
}

/* Halide's own frees what its small allocations keep without asking whether there were any, which reads below address
 * 0. The program ends here anyway. */
void _ZN6Halide7Runtime8Internal24halide_allocator_cleanupEv(void) {
}
