/* What each Func of a kernel takes, by Halide's sampling profiler. A kernel has it if its target has the feature `profile`. */
#include <string.h>

#include "runner.h"

/* Runtimes without threads, and shims, lack these. */
#pragma weak halide_profiler_get_state
#pragma weak halide_profiler_reset

/* By default it looks every millisecond, which is too seldom for kernels that take one. */
enum { LOOK_EVERY_US = 200, LEAST_CALLS = 3 };

static void report_func(const struct halide_profiler_func_stats *func, int runs) {
    event_open(NULL, '{');
    event_string("name", func->name);
    event_number("call_s", (double)func->time * 1e-9 / runs);
    const double looks = (double)func->active_threads_denominator;
    event_number("threads", looks > 0 ? (double)func->active_threads_numerator / looks : 0);
    event_unsigned("peak_bytes", func->memory_peak);
    event_unsigned("stack_bytes", func->stack_peak);
    event_number("allocations", (double)func->num_allocs / runs);
    event_close('}');
}

static void report(const struct halide_profiler_pipeline_stats *pipeline) {
    event_begin("funcs");
    event_integer("calls", pipeline->runs);
    event_integer("looks", pipeline->samples);
    event_number("call_s", (double)pipeline->time * 1e-9 / pipeline->runs);
    event_open("funcs", '[');
    for (int i = 0; i < pipeline->num_funcs; i++) {
        report_func(&pipeline->funcs[i], pipeline->runs);
    }
    event_close(']');
    event_end();
}

static _Noreturn void refuse(void) {
    fail(EXIT_USAGE, "usage", "--by-func needs kernels that are built with the target feature profile.");
}

void report_func_times(struct invocation *invocation, double duration_s) {
    if (!halide_profiler_get_state || !halide_profiler_reset) refuse();
    call_once(invocation); /* starts threads, and touches memory for the first time */
    halide_profiler_reset();
    struct halide_profiler_state *state = halide_profiler_get_state();
    state->sleep_time = LOOK_EVERY_US;
    const int64_t start = now_ns();
    for (int calls = 0; calls < LEAST_CALLS || (double)(now_ns() - start) * 1e-9 < duration_s; calls++) {
        call_once(invocation);
    }
    /* No pipeline runs now, and nothing else changes what the last ones have left. */
    const struct halide_profiler_pipeline_stats *pipeline = state->pipelines;
    if (!pipeline || pipeline->runs < 1) refuse();
    report(pipeline);
    halide_profiler_reset(); /* else it prints a report of its own when the program ends */
}
