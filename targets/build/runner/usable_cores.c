/* The cores that this process may use. */
#ifdef __linux__
/* Some C libraries declare a `call_once` of their own in stdlib.h then, so no file that needs that one asks for this. */
#define _GNU_SOURCE
#include <sched.h>
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
