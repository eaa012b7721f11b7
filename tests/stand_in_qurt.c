/* What a program for a device's DSP finds there, as far as Halide's runtime and ours use it: threads, locks and vector
 * contexts of QuRT, memory of the DSP's process, the power manager. Linux does the work, under QEMU. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <HAP_perf.h>
#include <HAP_power.h>

enum { HVX_128_BYTES = 1, VECTOR_BYTES = 128, MOST_THREADS = 64, CYCLES_PER_PACKET = 512 };

static pthread_t threads[MOST_THREADS];
static atomic_uint thread_count;
static int powered_clock, powered_vectors;
static _Thread_local int vector_contexts;

struct start {
    void (*entry)(void *);
    void *argument;
};

static void *run(void *given) {
    const struct start start = *(struct start *)given;
    free(given);
    start.entry(start.argument);
    return NULL;
}

int qurt_thread_create(unsigned *id, void *attributes, void (*entry)(void *), void *argument) {
    (void)attributes;
    struct start *start = malloc(sizeof *start);
    const unsigned place = atomic_fetch_add(&thread_count, 1);
    if (!start || place >= MOST_THREADS) return -1;
    *start = (struct start){entry, argument};
    *id = place + 1;
    return pthread_create(&threads[place], NULL, run, start);
}

int qurt_thread_join(unsigned id, int *status) {
    *status = 0;
    return pthread_join(threads[id - 1], NULL);
}

static void nap(void) {
    nanosleep(&(struct timespec){0, 50000}, NULL);
}

/* Of each only the first word is used; the real ones are larger. */
void qurt_mutex_init(atomic_uint *mutex) { atomic_store(mutex, 0); }
void qurt_mutex_destroy(atomic_uint *mutex) { (void)mutex; }
void qurt_mutex_lock(atomic_uint *mutex) {
    while (atomic_exchange(mutex, 1)) {
        sched_yield();
    }
}
void qurt_mutex_unlock(atomic_uint *mutex) { atomic_store(mutex, 0); }

void qurt_cond_init(atomic_uint *condition) { atomic_store(condition, 0); }
void qurt_cond_destroy(atomic_uint *condition) { (void)condition; }
void qurt_cond_signal(atomic_uint *condition) { atomic_fetch_add(condition, 1); }
void qurt_cond_wait(atomic_uint *condition, atomic_uint *mutex) {
    const unsigned before = atomic_load(condition);
    qurt_mutex_unlock(mutex);
    while (atomic_load(condition) == before) {
        nap();
    }
    qurt_mutex_lock(mutex);
}

int qurt_hvx_lock(int mode) {
    if (mode != HVX_128_BYTES) abort();
    vector_contexts++;
    return 0;
}

int qurt_hvx_unlock(void) {
    if (vector_contexts == 0) abort();
    vector_contexts--;
    return 0;
}

void *HAP_request_VTCM(unsigned bytes, unsigned single_page) {
    (void)single_page;
    return aligned_alloc(VECTOR_BYTES, (bytes + VECTOR_BYTES - 1) / VECTOR_BYTES * VECTOR_BYTES);
}

int HAP_release_VTCM(void *memory) {
    free(memory);
    return 0;
}

int HAP_power_set(void *client, HAP_power_request_t *request) {
    if (!client) return -1;
    const HAP_dcvs_v2_params_t *corners = &request->dcvs_v2.dcvs_params;
    switch (request->type) {
    case HAP_power_set_apptype: return request->apptype == HAP_POWER_COMPUTE_CLIENT_CLASS ? 0 : -1;
    case HAP_power_set_HVX: powered_vectors = request->hvx.power_up; return 0;
    case HAP_power_set_DCVS_v2:
        powered_clock = !request->dcvs_v2.dcvs_enable && request->dcvs_v2.set_dcvs_params &&
                        corners->min_corner == HAP_DCVS_VCORNER_TURBO && corners->max_corner == HAP_DCVS_VCORNER_TURBO;
        return powered_clock ? 0 : -1;
    }
    return -1;
}

/* r0 = c20: the packets that QEMU has run, which assemblers have no name for. Each is many cycles, or timing would take
 * as long as it does. Without power the clock stands. */
uint64 HAP_perf_get_pcycles(void) {
    register unsigned packets __asm__("r0");
    __asm__ volatile(".word 0x6a14c000" : "=r"(packets));
    return powered_clock && powered_vectors ? (uint64)packets * CYCLES_PER_PACKET : 0;
}

/* Of Qualcomm's C library. */
void *__hexagon_memcpy_likely_aligned_min32bytes_mult8bytes(void *to, const void *from, size_t bytes) {
    return memcpy(to, from, bytes);
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void __real_free(void *memory);
void *__real_realloc(void *memory, size_t bytes);
void *__real_memalign(size_t alignment, size_t bytes);

/* A program that is linked without --wrap has no memory. */
void *__wrap_malloc(size_t bytes) { return __real_malloc(bytes); }
void *__wrap_calloc(size_t count, size_t bytes) { return __real_calloc(count, bytes); }
void __wrap_free(void *memory) { __real_free(memory); }
void *__wrap_realloc(void *memory, size_t bytes) { return __real_realloc(memory, bytes); }
void *__wrap_memalign(size_t alignment, size_t bytes) { return __real_memalign(alignment, bytes); }
