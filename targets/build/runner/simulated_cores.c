/* Simulates parallel loops on several cores, for clocks that can follow only one thread.
 *
 * The tasks run one after the other. Each goes to the core that is free first, and the clock then shows the time as if
 * the cores had worked at once. A loop inside a task gets the cores that the outer loop leaves. */
#include <time.h>

#include "runner.h"

#pragma weak halide_set_custom_do_par_for

/* The time to wake the threads of a pool, and to fetch one task. */
enum { LOOP_START_NS = 5000, TASK_START_NS = 100 };

static int cores_to_spare = 1;
static int64_t saved_ns;

static int run_in_turn(void *user_context, halide_task_t task, int min, int size, uint8_t *closure) {
    const int cores = cores_to_spare;
    const int cores_used = size < cores ? size : cores;
    if (size <= 0) return 0;
    int64_t busy_ns[MAX_SIMULATED_CORES] = {0};
    int code = 0;
    cores_to_spare = cores / cores_used;
    const int64_t start = now_ns();
    for (int i = 0; i < size && code == 0; i++) {
        int first_free = 0;
        for (int core = 1; core < cores_used; core++) {
            if (busy_ns[core] < busy_ns[first_free]) first_free = core;
        }
        const int64_t task_start = now_ns();
        code = task(user_context, min + i, closure);
        busy_ns[first_free] += now_ns() - task_start + TASK_START_NS;
    }
    int64_t longest_ns = 0;
    for (int core = 0; core < cores_used; core++) {
        if (busy_ns[core] > longest_ns) longest_ns = busy_ns[core];
    }
    saved_ns += now_ns() - start - longest_ns - (cores_used > 1 ? LOOP_START_NS : 0);
    cores_to_spare = cores;
    return code;
}

void simulate_cores(int cores) {
    if (!halide_set_custom_do_par_for) {
        fail(EXIT_USAGE, "usage", "--simulated-cores needs a Halide runtime whose parallel loops can be replaced.");
    }
    cores_to_spare = cores;
    halide_set_custom_do_par_for(run_in_turn);
}

void start_simulated_clock(void) {
#ifdef CLOCK_PROCESS_CPUTIME_ID
    struct timespec unused;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &unused);
#endif
}

void mark_warm_up(void) {
#ifdef CLOCK_THREAD_CPUTIME_ID
    struct timespec unused;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &unused);
#endif
}

int64_t saved_by_cores_ns(void) {
    return saved_ns;
}
