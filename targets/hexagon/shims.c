/* Functions that Halide's runtimes for Hexagon (noos and qurt) lack on every system: linked with one of them, and with
 * the shims of a system or of none.
 *
 * Halide's own definitions are weak, so those below win. */
#include <stdio.h>
#include <stdlib.h>

#include "HalideRuntime.h"

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

/* Halide's own frees the memory of small allocations even if there were none, which reads below address 0. The program
 * ends here anyway. */
void _ZN6Halide7Runtime8Internal24halide_allocator_cleanupEv(void) {
}
