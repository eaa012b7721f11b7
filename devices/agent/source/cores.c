/* Which cores this process may use, and uses. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"

void usable_cores(cpu_set_t *cores) {
    CPU_ZERO(cores);
    if (sched_getaffinity(0, sizeof *cores, cores) != 0) CPU_SET(0, cores);
}

void need_cores(const struct request *request, const char *key, cpu_set_t *cores) {
    cpu_set_t usable;
    usable_cores(&usable);
    CPU_ZERO(cores);
    const char *text = need_field(request, key);
    while (*text) {
        char *end;
        const unsigned long core = text[0] >= '0' && text[0] <= '9' ? strtoul(text, &end, 10) : MAX_CORES;
        if (core >= MAX_CORES || (*end && *end != ',') || (*end == ',' && !end[1])) {
            fail("usage", "The field %s is not a list of cores.", key);
        }
        if (!CPU_ISSET(core, &usable)) fail("usage", "There is no usable core %lu.", core);
        CPU_SET(core, cores);
        text = *end ? end + 1 : end;
    }
}

bool use_cores(const cpu_set_t *cores) { return sched_setaffinity(0, sizeof *cores, cores) == 0; }

int core_count(void) {
    const long count = sysconf(_SC_NPROCESSORS_CONF);
    return count < 1 ? 1 : count > MAX_CORES ? MAX_CORES : (int)count;
}
