/* The data caches and the page faults of one core, simulated. */
#ifndef MEMORY_MODEL_H
#define MEMORY_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum { LINE_BITS = 6, PAGE_BITS = 12, LEVELS = 3, PAGE_LEVELS = 2 };

/* Counts since the clock began to run. */
struct memory_counts {
    uint64_t random[LEVELS];     /* lines that were not in this level, and that no prefetcher foresees */
    uint64_t sequential[LEVELS]; /* lines that were not, but next to a stream's last, or at an instruction's stride */
    uint64_t fresh_pages;        /* pages touched for the first time since they were mapped */
};

extern struct memory_counts memory_counts;

/* Sizes in bytes; 0 leaves a level out. False where there is no memory for it. */
bool set_up_memory_model(const uint64_t size_bytes[LEVELS]);

/* What an access met. */
struct memory_access {
    uint8_t level;      /* the first one that has the line, 0 the nearest; LEVELS: memory */
    uint8_t page_level; /* of the tables that hold pages' addresses; PAGE_LEVELS: none has it */
    bool is_foreseen;   /* a prefetcher has asked for the line */
    bool is_blocked;    /* a load that waits for stores */
};

/* Each access of the guest. A vector's comes in parts of 8 bytes, one call each, with the same `instruction`: any value
 * that is another one for the next instruction. */
struct memory_access access_memory(uint64_t address, bool is_store, bool is_8_bytes, const void *instruction);

/* The same for what is not timed: caches and pages are as after an access, but for stores that are on their way. */
void warm_up_memory(uint64_t address, const void *instruction);

/* These pages are the kernel's again: the next access to each of them faults. */
void forget_pages(uint64_t address, uint64_t size_bytes);

#endif
