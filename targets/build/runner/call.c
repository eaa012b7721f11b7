/* Calls a kernel through Halide's runtime. */
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "runner.h"

/* Runtimes without threads or devices, and shims, lack some of these. */
#pragma weak halide_set_error_handler
#pragma weak halide_set_num_threads
#pragma weak halide_device_sync
#pragma weak halide_copy_to_host

static atomic_flag error_seen = ATOMIC_FLAG_INIT;
static char error_message[896];

/* Any thread of the kernel may call this. The first message is kept; the call returns an error code. */
static void keep_error(void *user_context, const char *message) {
    (void)user_context;
    if (atomic_flag_test_and_set(&error_seen)) return;
    strncpy(error_message, message, sizeof error_message - 1);
    error_message[strcspn(error_message, "\n")] = 0;
}

void set_up_halide(int threads) {
    if (halide_set_error_handler) halide_set_error_handler(keep_error);
    if (threads > 0 && halide_set_num_threads) halide_set_num_threads(threads);
}

static void check(const struct invocation *invocation, int code, const char *what) {
    if (code == 0) return;
    /* The message of Halide's runtime if it cannot load libcuda. */
    if (strstr(error_message, "CUDA API not found: cuInit")) {
        fail(EXIT_RESOURCES, "gpu", "This device has no CUDA driver (libcuda.so): '%s' runs on NVIDIA cards only.",
             invocation->kernel->name);
    }
    const bool memory = code == halide_error_code_out_of_memory;
    fail(memory ? EXIT_RESOURCES : EXIT_HALIDE, memory ? "memory" : "halide", "%s of '%s' failed with error %d%s%s", what,
         invocation->kernel->name, code, *error_message ? ": " : ".", error_message);
}

void call_once(struct invocation *invocation) {
    check(invocation, invocation->kernel->call(invocation->argv), "The call");
    for (int i = 0; i < invocation->count; i++) {
        if (!is_output(&invocation->arguments[i])) continue;
        struct halide_buffer_t *output = invocation->argv[i];
        if (output->device_interface && halide_device_sync) {
            check(invocation, halide_device_sync(NULL, output), "Waiting for the device");
        }
    }
}

void copy_outputs_to_host(struct invocation *invocation) {
    for (int i = 0; i < invocation->count; i++) {
        struct argument *argument = &invocation->arguments[i];
        if (is_output(argument) && (argument->buffer.flags & halide_buffer_flag_device_dirty) && halide_copy_to_host) {
            check(invocation, halide_copy_to_host(NULL, &argument->buffer), "Copying the outputs from the device");
        }
    }
}

bool uses_device(const struct invocation *invocation) {
    for (int i = 0; i < invocation->count; i++) {
        const struct halide_buffer_t *buffer = invocation->argv[i];
        if (is_buffer(&invocation->arguments[i]) && buffer->device) return true;
    }
    return false;
}

#if defined(__hexagon__) && !defined(__linux__)
/* A Hexagon is timed in processor cycles: a simulator has no other clock, and the frequency of a device's may vary. A
 * cycle counts as a nanosecond, as at 1 GHz. */
static int64_t clock_ns(void) {
    return (int64_t)processor_cycles();
}
#else
static int64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
#endif

int64_t now_ns(void) {
    return clock_ns() - saved_by_cores_ns();
}
