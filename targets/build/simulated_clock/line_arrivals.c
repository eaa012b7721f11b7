/* The numbers are round ones, between the vendors' and Fog's tables for cores of the last ten years at some 2 to 3 GHz;
 * they are fitted to no pipeline. */
#include "line_arrivals.h"

#include <stddef.h>

/* Beyond level 1: cycles until a line is there, and until the next one can follow it. A line that is written comes from
 * memory and goes back there. */
static const uint64_t LATENCY_CYCLES[LEVELS + 1] = {0, 9, 40, 180};
static uint64_t occupied_cycles[LEVELS + 1] = {0, 2, 4, 12};

/* FILLS: lines that a core waits for at once. FORESEEN_CYCLES: how long before its use a prefetcher asks for a line. */
enum { FILLS = 12, FORESEEN_CYCLES = 400, ARRIVALS = 256 };

/* The second table of pages' addresses; a walk through the tables in memory. */
enum { SECOND_TABLE_CYCLES = 7, WALK_CYCLES = 30, WALKERS = 2 };
static uint64_t walker_free[WALKERS], walks;

static uint64_t level_free[LEVELS + 1]; /* cycle in which the level gives its next line */
static uint64_t fill_free[FILLS], fills;
static struct {
    uint64_t line, cycle;
} arrivals[ARRIVALS];

void set_up_line_arrivals(uint64_t memory_percent) {
    occupied_cycles[LEVELS] = occupied_cycles[LEVELS] * memory_percent / 100;
}

/* The level's next turn from `cycle` on, which is another one's no more. */
static uint64_t take_turn(int level, bool is_store, uint64_t cycle) {
    const uint64_t turn = later(level_free[level], cycle);
    level_free[level] = turn + (is_store && level == LEVELS ? 2 : 1) * occupied_cycles[level];
    return turn;
}

/* It comes to level 2, and from there to level 1. */
static uint64_t foreseen_arrival(int level, bool is_store, uint64_t cycle) {
    uint64_t asked = cycle > FORESEEN_CYCLES ? cycle - FORESEEN_CYCLES : 0;
    if (level > 1) asked = take_turn(level, is_store, asked) + LATENCY_CYCLES[level];
    return later(take_turn(1, is_store, asked) + LATENCY_CYCLES[1], cycle);
}

static uint64_t unforeseen_arrival(int level, bool is_store, uint64_t cycle) {
    uint64_t *free = &fill_free[fills++ % FILLS];
    *free = take_turn(level, is_store, later(cycle, *free)) + LATENCY_CYCLES[level];
    return *free;
}

/* Cycle in which the page's address is known. */
static uint64_t translated(int page_level, uint64_t cycle) {
    if (page_level < PAGE_LEVELS) return cycle + (page_level ? SECOND_TABLE_CYCLES : 0);
    uint64_t *free = &walker_free[walks++ % WALKERS];
    *free = later(*free, cycle) + WALK_CYCLES;
    return *free;
}

uint64_t line_arrival(uint64_t line, struct memory_access access, bool is_store, uint64_t cycle) {
    cycle = translated(access.page_level, cycle);
    const size_t place = line % ARRIVALS;
    if (access.level == 0) return arrivals[place].line == line ? later(cycle, arrivals[place].cycle) : cycle;
    const uint64_t arrival = access.is_foreseen ? foreseen_arrival(access.level, is_store, cycle)
                                                : unforeseen_arrival(access.level, is_store, cycle);
    arrivals[place].line = line;
    arrivals[place].cycle = arrival;
    return arrival;
}
