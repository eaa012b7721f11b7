/* The cores that this process may use. */
#ifdef __linux__
/* Some C libraries declare a `call_once` of their own in stdlib.h then, so no file that needs that one asks for this. */
#define _GNU_SOURCE
#include <dirent.h>
#include <sched.h>
#include <sys/types.h>
#endif

#include "runner.h"

bool is_usable_core(int core) {
#ifdef __linux__
    static cpu_set_t usable;
    static bool known;
    if (!known) known = sched_getaffinity(0, sizeof usable, &usable) == 0;
    return known && core >= 0 && core < CPU_SETSIZE && CPU_ISSET(core, &usable);
#else
    (void)core;
    return false;
#endif
}

int core_of_this_thread(void) {
#ifdef __linux__
    return sched_getcpu();
#else
    return -1;
#endif
}

#ifdef __linux__
/* Returns how many there are. */
static int threads_of_this_process(pid_t *threads, int most) {
    DIR *folder = opendir("/proc/self/task");
    if (!folder) return 0;
    int count = 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        pid_t thread = 0;
        for (const char *digit = entry->d_name; *digit >= '0' && *digit <= '9'; digit++) {
            thread = 10 * thread + (*digit - '0');
        }
        if (thread == 0) continue; /* . and .. */
        if (count < most) threads[count] = thread;
        count++;
    }
    closedir(folder);
    return count;
}

void spread_threads(void) {
    /* Halide starts its threads in the first calls: who has fewer then has fewer for good, and is not asked again. */
    static int looks_left = 64;
    if (looks_left == 0) return;
    looks_left--;
    int usable[CPU_SETSIZE], cores = 0;
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (is_usable_core(core)) usable[cores++] = core;
    }
    pid_t threads[CPU_SETSIZE];
    if (cores < 2 || threads_of_this_process(threads, CPU_SETSIZE) != cores) return;
    for (int i = 0; i < cores; i++) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(usable[i], &one);
        sched_setaffinity(threads[i], sizeof one, &one);
    }
    looks_left = 0;
}
#else
void spread_threads(void) {}
#endif
