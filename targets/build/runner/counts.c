/* What the first call of a kernel loads and stores, by Halide's tracing. A kernel has that if its target has the features
 * trace_loads, trace_stores and trace_realizations. Parallel loops run in one thread meanwhile, so that it is known for
 * which Func something is loaded. */
#include <string.h>

#include "runner.h"

/* Runtimes without threads, and shims, lack these. */
#pragma weak halide_set_custom_trace
#pragma weak halide_set_custom_parallel_runtime
#pragma weak halide_default_do_task
#pragma weak halide_default_do_loop_task
#pragma weak halide_default_semaphore_init
#pragma weak halide_default_semaphore_try_acquire
#pragma weak halide_default_semaphore_release

enum { MAX_FUNCS = 4096, MAX_NESTED = 1024 };

struct accesses {
    uint64_t count, values, bytes; /* a vector is one access */
};

struct func_counts {
    const char *name;
    struct accesses loaded; /* of anything, while it is computed */
    struct accesses stored;
    uint64_t points; /* stored, whatever the elements of a tuple */
    uint64_t realizations;
    uint64_t largest_points; /* of one realization, with its extents */
    int32_t dimensions, extents[MAX_DIMENSIONS];
    const char *within; /* the Func that is computed meanwhile, or NULL */
    uint64_t parallel_loops, tasks; /* of its own loops */
};

static struct func_counts counts[MAX_FUNCS];
static int func_count;
static struct func_counts *computed[MAX_NESTED]; /* the innermost last */
static int nested;
static bool is_traced;

static struct func_counts *counts_of(const char *name) {
    for (int i = 0; i < func_count; i++) {
        if (counts[i].name == name) return &counts[i];
    }
    for (int i = 0; i < func_count; i++) {
        if (strcmp(counts[i].name, name) == 0) return &counts[i];
    }
    if (func_count == MAX_FUNCS) fail(EXIT_RESOURCES, "memory", "The kernel has more than %d Funcs.", MAX_FUNCS);
    counts[func_count].name = name;
    return &counts[func_count++];
}

static struct func_counts *now_computed(void) {
    return nested > 0 ? computed[nested - 1] : counts_of("");
}

static void begin_func(const char *name) {
    if (nested == MAX_NESTED) fail(EXIT_RESOURCES, "memory", "The kernel computes more than %d Funcs within each other.", MAX_NESTED);
    computed[nested++] = counts_of(name);
}

static void count_access(struct accesses *accesses, const struct halide_trace_event_t *event) {
    accesses->count++;
    accesses->values += event->type.lanes;
    accesses->bytes += (uint64_t)event->type.lanes * element_bytes(event->type);
}

static void count_store(const struct halide_trace_event_t *event) {
    struct func_counts *func = counts_of(event->func);
    count_access(&func->stored, event);
    if (event->value_index == 0) func->points += event->type.lanes;
}

static void count_realization(const struct halide_trace_event_t *event) {
    uint64_t points = 1;
    for (int d = 1; d < event->dimensions; d += 2) {
        points *= event->coordinates[d] > 0 ? (uint64_t)event->coordinates[d] : 0;
    }
    struct func_counts *func = counts_of(event->func);
    func->realizations++;
    if (points < func->largest_points) return;
    func->largest_points = points;
    func->within = nested > 0 ? computed[nested - 1]->name : NULL;
    func->dimensions = event->dimensions / 2 < MAX_DIMENSIONS ? event->dimensions / 2 : MAX_DIMENSIONS;
    for (int d = 0; d < func->dimensions; d++) func->extents[d] = event->coordinates[2 * d + 1];
}

/* Returns what Halide gives to later events as their parent, which is not 0. */
static int32_t count_event(void *user_context, const struct halide_trace_event_t *event) {
    (void)user_context;
    is_traced = true;
    switch (event->event) {
    case halide_trace_load: count_access(&now_computed()->loaded, event); break;
    case halide_trace_store: count_store(event); break;
    case halide_trace_begin_realization: count_realization(event); break;
    case halide_trace_produce: begin_func(event->func); break;
    case halide_trace_end_produce: nested -= nested > 0; break;
    default: break;
    }
    return 1;
}

static int count_tasks(void *user_context, halide_task_t task, int min, int size, uint8_t *closure) {
    struct func_counts *func = now_computed();
    func->parallel_loops++;
    func->tasks += size > 0 ? (uint64_t)size : 0;
    int code = 0;
    for (int i = 0; i < size && code == 0; i++) {
        code = task(user_context, min + i, closure);
    }
    return code;
}

/* Tasks that run beside each other, as of `async`: it would not be known for which Func something is loaded. */
static int refuse_tasks(void *user_context, int count, struct halide_parallel_task_t *tasks, void *parent) {
    (void)user_context, (void)count, (void)tasks, (void)parent;
    fail(EXIT_HALIDE, "threads", "Parts of the kernel run beside each other, so what each loads cannot be counted.");
}

static void report_accesses_of(const char *key, const struct accesses *accesses) {
    event_open(key, '{');
    event_unsigned("count", accesses->count);
    event_unsigned("values", accesses->values);
    event_unsigned("bytes", accesses->bytes);
    event_close('}');
}

static void report_func(const struct func_counts *func) {
    event_open(NULL, '{');
    event_string("name", func->name);
    event_string("within", func->within ? func->within : "");
    report_accesses_of("loaded", &func->loaded);
    report_accesses_of("stored", &func->stored);
    event_unsigned("points", func->points);
    event_unsigned("realizations", func->realizations);
    event_open("extents", '[');
    for (int d = 0; d < func->dimensions; d++) event_integer(NULL, func->extents[d]);
    event_close(']');
    event_unsigned("parallel_loops", func->parallel_loops);
    event_unsigned("tasks", func->tasks);
    event_close('}');
}

static int32_t ignore_event(void *user_context, const struct halide_trace_event_t *event) {
    (void)user_context, (void)event;
    return 1;
}

void set_up_tracing(bool counts_accesses) {
    if (counts_accesses && !(halide_set_custom_trace && halide_set_custom_parallel_runtime)) {
        fail(EXIT_USAGE, "usage", "--count needs a Halide runtime whose tracing and parallel loops can be replaced.");
    }
    if (halide_set_custom_trace) halide_set_custom_trace(counts_accesses ? count_event : ignore_event);
    if (!counts_accesses) return;
    halide_set_custom_parallel_runtime(count_tasks, halide_default_do_task, halide_default_do_loop_task, refuse_tasks,
                                       halide_default_semaphore_init, halide_default_semaphore_try_acquire,
                                       halide_default_semaphore_release);
}

void report_accesses(void) {
    if (!is_traced) {
        fail(EXIT_USAGE, "usage", "--count needs kernels that are built with the target features trace_loads, trace_stores and trace_realizations.");
    }
    event_begin("counts");
    event_open("funcs", '[');
    for (int i = 0; i < func_count; i++) report_func(&counts[i]);
    event_close(']');
    event_end();
}
