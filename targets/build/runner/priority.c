/* Kernels that are timed run before everything ordinary on their cores, where the system allows it: a core that others
 * have for some milliseconds is twice the time of a short kernel, and slows a long one little. */
#include <stdio.h>
#include <stdlib.h>

#include "runner.h"

#if defined(__linux__) && !defined(__hexagon__)
#include <sched.h>
#include <sys/resource.h>

static bool is_real_time;

/* Whether the system keeps some time for others, so that a kernel that hangs can be ended. */
static bool others_are_safe(void) {
    char text[32];
    FILE *file = fopen(PROC_ROOT "/sys/kernel/sched_rt_runtime_us", "r");
    if (!file) return false;
    const bool is_read = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    return is_read && strtol(text, NULL, 10) > 0;
}

void take_priority(void) {
    const struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_RR)};
    is_real_time = others_are_safe() && sched_setscheduler(0, SCHED_RR, &lowest) == 0;
    /* Where only this is allowed, others that compute already keep their core until their turn ends. */
    if (!is_real_time) setpriority(PRIO_PROCESS, 0, -20);
}

bool has_priority(void) {
    return is_real_time;
}
#else
void take_priority(void) {}

bool has_priority(void) {
    return false;
}
#endif
