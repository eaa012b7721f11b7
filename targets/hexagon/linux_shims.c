/* Functions that Halide's runtime for a standalone Hexagon (noos) lacks under Linux, and so under QEMU's user mode:
 * threads, and those of Qualcomm's C library.
 *
 * Halide's own definitions are weak, so those below win. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "HalideRuntime.h"

enum { MAX_THREADS = 64, STACK_BYTES = 1 << 20 };

static int threads; /* 0: as many as processors */

/* Linux switches the vector registers with the others, so a thread need not acquire a set of them. */
int qurt_hvx_lock(int mode) {
    (void)mode;
    return 0;
}

int qurt_hvx_unlock(void) {
    return 0;
}

/* From Qualcomm's C library. */
void *__hexagon_memcpy_likely_aligned_min32bytes_mult8bytes(void *to, const void *from, size_t bytes) {
    return memcpy(to, from, bytes);
}

int halide_set_num_threads(int count) {
    const int before = threads;
    threads = count;
    return before;
}

struct loop {
    void *user_context;
    halide_task_t task;
    int end;
    uint8_t *closure;
    atomic_int next;
    atomic_int code;
};

static _Thread_local bool inside_loop;

static void *run_tasks(void *argument) {
    struct loop *loop = argument;
    inside_loop = true;
    while (atomic_load(&loop->code) == 0) {
        const int index = atomic_fetch_add(&loop->next, 1);
        if (index >= loop->end) break;
        const int code = loop->task(loop->user_context, index, loop->closure);
        if (code != 0) atomic_store(&loop->code, code);
    }
    inside_loop = false;
    return NULL;
}

static int thread_count(int tasks) {
    const int wanted = threads > 0 ? threads : (int)sysconf(_SC_NPROCESSORS_ONLN);
    const int most = wanted < MAX_THREADS ? wanted : MAX_THREADS;
    return most < tasks ? most : tasks;
}

/* A standalone Hexagon has no threads and runs the tasks in turn; Linux has threads. A loop inside a loop finds them busy
 * and runs in its own thread. */
int halide_default_do_par_for(void *user_context, halide_task_t task, int min, int size, uint8_t *closure) {
    struct loop loop = {.user_context = user_context, .task = task, .end = min + size, .closure = closure};
    atomic_init(&loop.next, min);
    atomic_init(&loop.code, 0);
    const bool nested = inside_loop;
    pthread_t helpers[MAX_THREADS];
    int helping = 0;
    pthread_attr_t attributes;
    const int wanted = nested ? 1 : thread_count(size);
    if (wanted > 1 && pthread_attr_init(&attributes) == 0) {
        pthread_attr_setstacksize(&attributes, STACK_BYTES);
        while (helping < wanted - 1 && pthread_create(&helpers[helping], &attributes, run_tasks, &loop) == 0) helping++;
        pthread_attr_destroy(&attributes);
    }
    run_tasks(&loop);
    inside_loop = nested;
    for (int i = 0; i < helping; i++) {
        pthread_join(helpers[i], NULL);
    }
    return atomic_load(&loop.code);
}
