/* Clocks. */
#include <errno.h>
#include <time.h>

#include "agent.h"

static double clock_s(clockid_t clock) {
    struct timespec now;
    if (clock_gettime(clock, &now) != 0) clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double monotonic_s(void) { return clock_s(CLOCK_MONOTONIC); }

double boot_time_s(void) { return clock_s(CLOCK_BOOTTIME); }

void nap_ms(int duration_ms) {
    const struct timespec duration = {duration_ms / 1000, (long)(duration_ms % 1000) * 1000000L};
    nanosleep(&duration, NULL); /* a signal may cut it short: callers check again */
}
