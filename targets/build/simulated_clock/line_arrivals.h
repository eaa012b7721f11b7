/* When the lines that a core asks for are there: how far they come from, how many can be on their way at once, and how
 * many a level gives in how much time. */
#ifndef LINE_ARRIVALS_H
#define LINE_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

#include "memory_model.h"

/* Of two cycles. */
static inline uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* How much dearer lines from memory are, in percent, because other cores want some too. */
void set_up_line_arrivals(uint64_t memory_percent);

/* The cycle, `cycle` at the earliest, in which a line is in level 1 that was asked for in `cycle`. */
uint64_t line_arrival(uint64_t line, struct memory_access access, bool is_store, uint64_t cycle);

#endif
