/* A scoreboard: for each instruction in its order, the cycle in which it begins and the one in which it is done.
 *
 * The numbers are round ones, between the vendors' and Fog's tables for cores of the last ten years; they are fitted to
 * no pipeline. Caches are not modelled here: every load finds its line in level 1. */
#include "core_model.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum unit {
    NO_UNIT,
    ALU_UNIT,
    MULTIPLY_UNIT,
    DIVIDE_UNIT,
    BRANCH_UNIT,
    VECTOR_UNIT,
    VECTOR_SHIFT_UNIT,
    SHUFFLE_UNIT,
    FLOAT_ADD_UNIT,
    FLOAT_MULTIPLY_UNIT,
    CONVERT_UNIT,
    LOAD_UNIT,
    STORE_UNIT,
    REPLAY_UNIT, /* of loads that wait for stores: one after the other */
    UNITS
};

struct cost {
    enum unit unit;
    uint8_t cycles; /* until its result is there */
    uint8_t busy_cycles; /* until its unit takes the next one */
};

static const struct cost COSTS[OPERATIONS] = {
    [MOVE] = {NO_UNIT, 0, 0},
    [ALU] = {ALU_UNIT, 1, 1},
    [MULTIPLY] = {MULTIPLY_UNIT, 3, 1},
    [DIVIDE] = {DIVIDE_UNIT, 14, 8},
    [BRANCH] = {BRANCH_UNIT, 1, 1},
    [VECTOR_ALU] = {VECTOR_UNIT, 1, 1},
    [VECTOR_SHIFT] = {VECTOR_SHIFT_UNIT, 1, 1},
    [VECTOR_MULTIPLY] = {FLOAT_MULTIPLY_UNIT, 4, 1},
    [SHUFFLE] = {SHUFFLE_UNIT, 2, 1},
    [FLOAT_ADD] = {FLOAT_ADD_UNIT, 3, 1},
    [FLOAT_MULTIPLY] = {FLOAT_MULTIPLY_UNIT, 3, 1},
    [FLOAT_MULTIPLY_ADD] = {FLOAT_MULTIPLY_UNIT, 4, 1},
    [FLOAT_DIVIDE] = {DIVIDE_UNIT, 12, 5},
    [CONVERT] = {CONVERT_UNIT, 4, 1},
    [TRANSFER] = {SHUFFLE_UNIT, 3, 1},
    [GATHER] = {LOAD_UNIT, 12, 8},
};

/* How many there are of each; of the vectors' the kind of core says it. */
static const uint8_t UNIT_COUNTS[UNITS] = {
    [ALU_UNIT] = 4,       [MULTIPLY_UNIT] = 1,  [DIVIDE_UNIT] = 1,         [BRANCH_UNIT] = 1, [VECTOR_SHIFT_UNIT] = 2,
    [SHUFFLE_UNIT] = 2,   [FLOAT_ADD_UNIT] = 2, [FLOAT_MULTIPLY_UNIT] = 2, [CONVERT_UNIT] = 2, [LOAD_UNIT] = 2,
    [STORE_UNIT] = 1,     [REPLAY_UNIT] = 1,
};

const struct core_kind X86_CORE = {X86_SYNTAX, .fetched_per_cycle = 5, .vector_units = 3};
const struct core_kind AARCH64_CORE = {AARCH64_SYNTAX, .fetched_per_cycle = 4, .vector_units = 2};
const struct core_kind ARM_CORE = {ARM_SYNTAX, .fetched_per_cycle = 4, .vector_units = 2};

/* WINDOW: instructions that are under way at once. SLOTS: cycles ahead that units are booked for. */
enum { WINDOW = 256, SLOTS = 1024, STORES = 1024 };
/* A load from level 1; of what a store has on its way; one that waits for a store; a branch that was not foreseen. */
enum { LOAD_CYCLES = 5, FORWARD_CYCLES = 5, REPLAY_CYCLES = 12, REFILL_CYCLES = 13 };

static const struct core_kind *core;
static struct core_block *current;

static uint64_t ready[REGISTERS];  /* cycle in which the value is there */
static uint64_t leaving[WINDOW];   /* cycle in which each of the last instructions left */
static uint64_t fetched;           /* instructions */
static uint64_t fetch_cycle;
static unsigned fetched_in_cycle;
static uint64_t left_cycle;        /* of the newest instruction */
static uint64_t decided_cycle;     /* in which the newest block's last instruction, its branch, was done */

static struct {
    uint64_t cycle;
    uint8_t booked[UNITS];
} slots[SLOTS];
static uint64_t first_free[UNITS]; /* from the cycle of the newest fetch on, all before it are full */

static struct {
    uint64_t place, cycle;
} stored[STORES];

/* Serial numbers of what followed last time: after the last blocks (a long history), or else after this block alone. */
enum { LONG_GUESSES = 1 << 14, SHORT_GUESSES = 1 << 12 };
static struct {
    uint64_t key, next;
} long_guesses[LONG_GUESSES];
static uint64_t short_guesses[SHORT_GUESSES];
static uint64_t history;

void set_up_core(const struct core_kind *kind) {
    core = kind;
}

static inline uint8_t *booked_in(uint64_t cycle) {
    const size_t place = cycle % SLOTS;
    if (slots[place].cycle != cycle) {
        slots[place].cycle = cycle;
        memset(slots[place].booked, 0, sizeof slots[place].booked);
    }
    return slots[place].booked;
}

static inline uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static inline bool is_full(enum unit unit, uint64_t cycle) {
    return booked_in(cycle)[unit] >= (unit == VECTOR_UNIT ? core->vector_units : UNIT_COUNTS[unit]);
}

/* The first cycle from `cycle` on in which the unit is not known to be full. */
static inline uint64_t first_chance(enum unit unit, uint64_t cycle) {
    first_free[unit] = later(first_free[unit], fetch_cycle);
    return later(cycle, first_free[unit]);
}

static inline void take(enum unit unit, uint64_t cycle) {
    booked_in(cycle)[unit]++;
    while (is_full(unit, first_free[unit])) first_free[unit]++;
}

/* The first cycle from `cycle` on in which the unit is free, which it is not any more. */
static uint64_t book(enum unit unit, uint64_t cycle, int busy_cycles, bool is_vector) {
    cycle = first_chance(unit, cycle);
    if (is_vector) cycle = first_chance(VECTOR_UNIT, cycle);
    while (is_full(unit, cycle) || (is_vector && is_full(VECTOR_UNIT, cycle))) cycle++;
    if (is_vector && unit != VECTOR_UNIT) take(VECTOR_UNIT, cycle);
    for (int i = 0; i < busy_cycles; i++) take(unit, cycle + (uint64_t)i);
    return cycle;
}

static inline uint64_t fetch(void) {
    const uint64_t window_free = leaving[fetched % WINDOW];
    if (window_free > fetch_cycle) {
        fetch_cycle = window_free;
        fetched_in_cycle = 0;
    }
    if (fetched_in_cycle == core->fetched_per_cycle) {
        fetch_cycle++;
        fetched_in_cycle = 0;
    }
    fetched_in_cycle++;
    return fetch_cycle;
}

static inline uint64_t when_ready(const uint8_t *registers, int count, uint64_t cycle) {
    for (int i = 0; i < count; i++) cycle = later(cycle, ready[registers[i]]);
    return cycle;
}

/* Cycle in which a load has what it asked for: from the cache, or from a store that is not there yet. */
static uint64_t load(const struct core_instruction *instruction, uint64_t cycle) {
    const struct instruction_text *text = &instruction->text;
    cycle = book(LOAD_UNIT, when_ready(text->addresses, text->address_count, cycle), 1, false) + LOAD_CYCLES;
    for (int i = 0; i < 2; i++) {
        const size_t place = instruction->loaded[i] % STORES;
        if (stored[place].place == instruction->loaded[i]) cycle = later(cycle, stored[place].cycle + FORWARD_CYCLES);
    }
    if (instruction->is_blocked) cycle = book(REPLAY_UNIT, cycle, REPLAY_CYCLES, false) + REPLAY_CYCLES;
    return cycle;
}

/* Cycle in which a store is on its way, and need not be waited for any more. */
static uint64_t store(const struct core_instruction *instruction, uint64_t address_cycle, uint64_t value_cycle) {
    const uint64_t begin = later(address_cycle, value_cycle);
    for (int i = 0; i < 2; i++) {
        const size_t place = instruction->stored[i] % STORES;
        stored[place].place = instruction->stored[i];
        stored[place].cycle = begin;
    }
    return book(STORE_UNIT, begin, 1, false) + 1;
}

/* Cycle in which it is done. */
static uint64_t execute(struct core_instruction *instruction) {
    const struct instruction_text *text = &instruction->text;
    const uint64_t fetched_cycle = fetch();
    uint64_t begin = fetched_cycle;
    if (instruction->loaded[0]) {
        begin = load(instruction, begin);
    } else if (!instruction->stored[0]) {
        begin = when_ready(text->addresses, text->address_count, begin); /* it computes with them */
    }
    begin = when_ready(text->sources, text->source_count, begin);
    const struct cost *cost = &COSTS[text->operation];
    const bool is_vector = text->operation >= VECTOR_ALU && text->operation != GATHER;
    uint64_t done = begin;
    if (cost->unit != NO_UNIT) done = book(cost->unit, begin, cost->busy_cycles, is_vector) + cost->cycles;
    if (instruction->stored[0]) {
        done = store(instruction, when_ready(text->addresses, text->address_count, fetched_cycle), done);
    }
    for (int i = 0; i < text->target_count; i++) ready[text->targets[i]] = done;
    instruction->loaded[0] = instruction->stored[0] = 0;
    instruction->is_blocked = false;
    left_cycle = later(left_cycle, done);
    leaving[fetched++ % WINDOW] = left_cycle;
    return done;
}

/* Fetching begins anew where the guess of what comes next was wrong. */
static void follow(uint64_t last, uint64_t next) {
    const uint64_t key = (history ^ last) * 0x9E3779B97F4A7C15u;
    const size_t long_place = key >> 50, short_place = last % SHORT_GUESSES;
    const bool is_known = long_guesses[long_place].key == key;
    const uint64_t guess = is_known ? long_guesses[long_place].next : short_guesses[short_place];
    if (guess != next) {
        fetch_cycle = later(fetch_cycle, decided_cycle + REFILL_CYCLES);
        fetched_in_cycle = 0;
        long_guesses[long_place].key = key;
        long_guesses[long_place].next = next;
    }
    short_guesses[short_place] = next;
    history = history << 5 ^ next;
}

static void end_block(void) {
    for (size_t i = 0; i < current->count; i++) decided_cycle = execute(&current->instructions[i]);
}

void begin_block(struct core_block *block) {
    if (current) {
        end_block();
        follow(current->serial, block->serial);
    }
    current = block;
}

void begin_system_call(void) {
    if (current) end_block();
    current = NULL;
    fetch_cycle = left_cycle;
    fetched_in_cycle = 0;
}

uint64_t core_cycles(void) {
    return left_cycle;
}
