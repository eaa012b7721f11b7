/* What the tests of the simulated clock run under the emulator: one task, timed by the program's own clock.
 *
 *     clock_probe sleep | clock | mark | warm | cold | thread | fresh | forward | split | misses | chains | divisions | gathers | branches
 *                 | walk STRIDE COUNT
 *
 * Prints nanoseconds, one number a line. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { WALKED_BYTES = 8 << 20, PAGES = 512, PAGE_BYTES = 4096, READINGS = 2000, FORWARDED = 10000, STEPS = 10000, CHAINS = 8, MISSES = 40000, LINES = 4096, LINE_BYTES = 64 };

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void print_ns(int64_t time_ns) {
    printf("%lld\n", (long long)time_ns);
}

static void walk(size_t stride, long count) {
    volatile char *memory = malloc(WALKED_BYTES);
    memset((void *)memory, 1, WALKED_BYTES);
    size_t place = 0;
    const int64_t start_ns = now_ns();
    for (long i = 0; i < count; i++) {
        (void)memory[place];
        place = (place + stride) % WALKED_BYTES;
    }
    print_ns(now_ns() - start_ns);
}

/* Reads what fits in level 2, after a marked clock has seen it read before, or has not. */
static void read_lines_twice(bool is_seen_before) {
    static volatile char lines[LINES * LINE_BYTES];
    static char others[WALKED_BYTES];
    struct timespec unused;
    if (is_seen_before) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &unused);
    for (size_t i = 0; i < sizeof lines; i += LINE_BYTES) (void)lines[i];
    volatile int64_t on_the_stack = now_ns(); /* whose page is to be known, too */
    (void)on_the_stack;
    if (is_seen_before) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &unused);
    memset(others, 1, sizeof others); /* is never seen */
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &unused);
    for (int turn = 0; turn < 2; turn++) {
        const int64_t start_ns = now_ns();
        for (size_t i = 0; i < sizeof lines; i += LINE_BYTES) (void)lines[i];
        print_ns(now_ns() - start_ns);
    }
}

static int64_t touch_ns(volatile char *memory) {
    const int64_t start_ns = now_ns();
    for (int page = 0; page < PAGES; page++) memory[(size_t)page * PAGE_BYTES] = 1;
    return now_ns() - start_ns;
}

/* The first touch, the second, one after the memory was given back, and one of a new mapping in its place. */
static void touch_pages(void) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    const size_t size = (size_t)PAGES * PAGE_BYTES;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);
    print_ns(touch_ns(memory));
    print_ns(touch_ns(memory));
    madvise(memory, size, MADV_DONTNEED);
    print_ns(touch_ns(memory));
    munmap(memory, size);
    memory = mmap(memory, size, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0);
    print_ns(touch_ns(memory));
}

/* Vectors read right after they were written: as one vector, then as the halves of two. */
static void forward(void) {
    static int32_t __attribute__((aligned(64))) memory[64];
    typedef int32_t vector __attribute__((vector_size(16), aligned(4), may_alias));
    for (int offset = 0; offset <= 2; offset += 2) {
        vector sum = {0};
        const int64_t start_ns = now_ns();
        for (int i = 0; i < FORWARDED; i++) {
            *(volatile vector *)memory = sum;
            *(volatile vector *)(memory + 4) = sum;
            sum += *(volatile vector *)(memory + offset);
        }
        print_ns(now_ns() - start_ns);
    }
}

/* Vectors that lie in one line, and others that lie in two. */
static void split(void) {
    static char __attribute__((aligned(64))) memory[256];
    typedef int32_t vector __attribute__((vector_size(16), aligned(4), may_alias));
    for (int offset = 0; offset <= 56; offset += 56) {
        const int64_t start_ns = now_ns();
        for (int i = 0; i < STEPS; i++) {
            for (int k = 0; k < 8; k++) (void)*(volatile vector *)(memory + offset + (k & 1) * 64);
        }
        print_ns(now_ns() - start_ns);
    }
}

/* Lines from far away: each tells where the next one lies, or all places are known before. */
static void misses(void) {
    const size_t stride = 37 * 4160;
    char *memory = malloc(WALKED_BYTES);
    memset(memory, 0, WALKED_BYTES);
    size_t place = 0;
    for (int i = 0; i < MISSES; i++) {
        const size_t next = (place + stride) % WALKED_BYTES;
        *(volatile size_t *)(memory + place) = next;
        place = next;
    }
    place = 0;
    int64_t start_ns = now_ns();
    for (int i = 0; i < MISSES; i++) place = *(volatile size_t *)(memory + place);
    print_ns(now_ns() - start_ns);
    place = 0;
    start_ns = now_ns();
    for (int i = 0; i < MISSES; i++) {
        (void)*(volatile size_t *)(memory + place);
        place = (place + stride) % WALKED_BYTES;
    }
    print_ns(now_ns() - start_ns);
}

/* Equally many additions: each needs the one before; eight do not need each other; each goes through memory. */
static void chains(void) {
    float sums[CHAINS] = {1, 2, 3, 4, 5, 6, 7, 8};
    volatile float kept = 1, step = 0.5f;
    const float added = step;
    int64_t start_ns = now_ns();
    for (int i = 0; i < STEPS * CHAINS; i++) sums[0] += added;
    print_ns(now_ns() - start_ns);
    start_ns = now_ns();
    for (int i = 0; i < STEPS; i++) {
        for (int chain = 0; chain < CHAINS; chain++) sums[chain] += added;
    }
    print_ns(now_ns() - start_ns);
    start_ns = now_ns();
    for (int i = 0; i < STEPS * CHAINS; i++) kept += added;
    print_ns(now_ns() - start_ns);
    for (int chain = 0; chain < CHAINS; chain++) kept += sums[chain];
}

/* A branch that is taken every other time, and one that is taken by chance. */
static void branches(void) {
    for (int by_chance = 0; by_chance <= 1; by_chance++) {
        uint32_t state = 1;
        const int64_t start_ns = now_ns();
        for (uint32_t i = 0; i < STEPS; i++) {
            state = state * 1664525u + 1013904223u;
            const uint32_t word = by_chance ? state >> 16 : i;
            if (word & 1) __asm__ volatile("nop" ::: "memory");
        }
        print_ns(now_ns() - start_ns);
    }
}

/* Additions and divisions that need the one before: of integers, then of floats. */
static void divisions(void) {
    volatile uint32_t from = 1000000007;
    volatile float float_from = 1.5f;
    uint32_t sum = from, quotient = from;
    const uint32_t step = from;
    int64_t start_ns = now_ns();
    for (int i = 0; i < STEPS; i++) {
        sum += step;
        __asm__ volatile("" : "+r"(sum));
    }
    print_ns(now_ns() - start_ns);
    start_ns = now_ns();
    for (int i = 0; i < STEPS; i++) {
        quotient = step / (quotient | 1);
        __asm__ volatile("" : "+r"(quotient));
    }
    print_ns(now_ns() - start_ns);
    float float_sum = float_from, float_quotient = float_from;
    const float float_step = float_from;
    start_ns = now_ns();
    for (int i = 0; i < STEPS; i++) float_sum += float_step;
    print_ns(now_ns() - start_ns);
    start_ns = now_ns();
    for (int i = 0; i < STEPS; i++) float_quotient = float_step / float_quotient;
    print_ns(now_ns() - start_ns);
    float_from = float_sum + float_quotient;
    from = sum + quotient;
}

/* Vectors that lie in one place, and others that are gathered from as near. */
#ifdef __x86_64__
__attribute__((target("avx2"))) static void gathers(void) {
    static int32_t __attribute__((aligned(64))) memory[64];
    int64_t start_ns = now_ns();
    for (int i = 0; i < STEPS; i++) {
        __asm__ volatile("vmovdqu (%0), %%ymm1" : : "r"(memory) : "xmm1", "memory");
    }
    print_ns(now_ns() - start_ns);
    start_ns = now_ns();
    for (int i = 0; i < STEPS; i++) {
        __asm__ volatile("vpcmpeqd %%ymm2, %%ymm2, %%ymm2\n\tvpxor %%ymm3, %%ymm3, %%ymm3\n\t"
                         "vpgatherdd %%ymm2, (%0,%%ymm3,4), %%ymm1"
                         : : "r"(memory) : "xmm1", "xmm2", "xmm3", "memory");
    }
    print_ns(now_ns() - start_ns);
}
#else
static void gathers(void) {}
#endif

static void sleep_a_little(void) {
    const struct timespec wanted = {.tv_nsec = 20000000};
    const int64_t start_ns = now_ns();
    nanosleep(&wanted, NULL);
    print_ns(now_ns() - start_ns);
}

static void *nothing(void *argument) {
    return argument;
}

int main(int count, char **arguments) {
    const char *task = count > 1 ? arguments[1] : "";
    if (strcmp(task, "walk") == 0 && count > 3) {
        walk((size_t)atol(arguments[2]), atol(arguments[3]));
    } else if (strcmp(task, "fresh") == 0) {
        touch_pages();
    } else if (strcmp(task, "forward") == 0) {
        forward();
    } else if (strcmp(task, "split") == 0) {
        split();
    } else if (strcmp(task, "misses") == 0) {
        misses();
    } else if (strcmp(task, "chains") == 0) {
        chains();
    } else if (strcmp(task, "divisions") == 0) {
        divisions();
    } else if (strcmp(task, "gathers") == 0) {
        gathers();
    } else if (strcmp(task, "branches") == 0) {
        branches();
    } else if (strcmp(task, "sleep") == 0) {
        sleep_a_little();
    } else if (strcmp(task, "clock") == 0) {
        for (int i = 0; i < READINGS; i++) print_ns(now_ns());
    } else if (strcmp(task, "mark") == 0) {
        struct timespec unused;
        walk(64, STEPS);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &unused);
        walk(64, STEPS);
    } else if (strcmp(task, "warm") == 0) {
        read_lines_twice(true);
    } else if (strcmp(task, "cold") == 0) {
        read_lines_twice(false);
    } else if (strcmp(task, "thread") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, nothing, NULL);
        pthread_join(thread, NULL);
        puts("joined");
    } else {
        return 2;
    }
    return 0;
}
