/* An out-of-order core: instructions are fetched in order, begin when what they need is there and a unit is free, and
 * leave in order. */
#ifndef CORE_MODEL_H
#define CORE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "instruction_text.h"
#include "memory_model.h"

/* One instruction of a block, and what its newest execution did. */
struct core_instruction {
    struct instruction_text text;
    uintptr_t serial; /* tells instructions apart, equally in every run */
    /* The first 8 bytes that it read and wrote, and the last, as address / 8 + 1; 0: nothing. */
    uint64_t loaded[2], stored[2];
    struct memory_access access;
};

struct core_block {
    uint64_t serial;
    size_t count;
    struct core_instruction instructions[];
};

/* What kinds of cores differ in. */
struct core_kind {
    enum syntax syntax;
    uint8_t fetched_per_cycle;
    uint8_t vector_units; /* of all vector operations together */
};
extern const struct core_kind X86_CORE, AARCH64_CORE, ARM_CORE;

void set_up_core(const struct core_kind *kind);

/* A block has begun; the one before is over, and its instructions know their addresses. What is not timed only shows the
 * branch predictor what follows what. */
void begin_block(struct core_block *block, bool is_timed);

/* The block that is under way ends in a system call, before which everything has to be done. */
void begin_system_call(bool is_timed);

/* Cycles since the start, of all blocks that are over. */
uint64_t core_cycles(void);

#endif
