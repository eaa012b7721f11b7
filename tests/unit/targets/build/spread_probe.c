/* Starts so many threads beside the first, spreads them twice, and prints the cores that each may use after each time. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

extern void spread_threads(void);

static pthread_barrier_t together;

static void print_cores(const char *who) {
    cpu_set_t usable;
    sched_getaffinity(0, sizeof usable, &usable);
    flockfile(stdout); // a line is several calls, and so is another thread's
    printf("%s", who);
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &usable)) printf(" %d", core);
    }
    printf("\n");
    funlockfile(stdout);
}

static void *wait_and_print(void *unused) {
    (void)unused;
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together);
    print_cores("thread");
    return NULL;
}

int main(int argc, char **argv) {
    int count = 0;
    for (const char *digit = argc > 1 ? argv[1] : ""; *digit; digit++) count = 10 * count + (*digit - '0');
    pthread_t threads[256];
    pthread_barrier_init(&together, NULL, (unsigned)count + 1);
    for (int i = 0; i < count; i++) pthread_create(&threads[i], NULL, wait_and_print, NULL);
    pthread_barrier_wait(&together);
    spread_threads();
    spread_threads();
    pthread_barrier_wait(&together);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    print_cores("main");
    return 0;
}
