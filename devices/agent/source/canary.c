/* The canary: a fixed piece of work whose time shows how fast the core runs now.
 *
 * Its time follows the core's clock (dependent multiplications and additions, of integers and floats) and the first
 * two levels of its cache (a walk in a fixed random order), and hardly anything else. */
#include <string.h>

#include "agent.h"

/* 48 KiB: more than most first levels hold, less than any second level. */
enum { NODES = 12288, STEPS = 300000, REPEATS = 7 };

static uint32_t next_node[NODES];

/* One cycle through all nodes (Sattolo's shuffle), the same on every device. */
static void lay_out_walk(void) {
    uint32_t state = 12345;
    for (uint32_t i = 0; i < NODES; i++) {
        next_node[i] = i;
    }
    for (uint32_t i = NODES - 1; i > 0; i--) {
        state = state * 1664525u + 1013904223u;
        const uint32_t j = (uint32_t)((uint64_t)state * i >> 32), kept = next_node[i];
        next_node[i] = next_node[j];
        next_node[j] = kept;
    }
}

static uint32_t work(void) {
    uint32_t node = 0, number = 1;
    float value = 1.0f;
    for (int i = 0; i < STEPS; i++) {
        node = next_node[node];
        number = (number ^ node) * 2654435761u;
        number = (number >> 15) * 2246822519u + node;
        value = value * 0.9999f + (float)(number & 255u) * 0.0001f;
    }
    return number + (uint32_t)value;
}

double time_canary(const cpu_set_t *cores) {
    volatile uint32_t result; /* otherwise the compiler drops the work */
    cpu_set_t before, one;
    usable_cores(&before);
    const bool chosen = CPU_COUNT(cores) > 0;
    const cpu_set_t *among = chosen ? cores : &before;
    int core = -1;
    for (int i = 0; i < MAX_CORES && !(chosen && core >= 0); i++) {
        if (CPU_ISSET(i, among)) core = i;
    }
    CPU_ZERO(&one);
    if (core >= 0) CPU_SET(core, &one);
    use_cores(&one);
    lay_out_walk();
    result = work(); /* warms the cache */
    double shortest_s = 1e30;
    for (int i = 0; i < REPEATS; i++) {
        const double start_s = monotonic_s();
        result = work();
        const double time_s = monotonic_s() - start_s;
        if (time_s < shortest_s) shortest_s = time_s;
        report_alive();
    }
    (void)result;
    use_cores(&before);
    return shortest_s;
}

/* canary (cores) */
void command_canary(const struct request *request) {
    cpu_set_t cores;
    need_cores(request, "cores", &cores);
    const double time_s = time_canary(&cores);
    event_begin("result");
    event_number("time_s", time_s);
    event_end();
}
