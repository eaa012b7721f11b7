/* A scoreboard: for each instruction in its order, the cycle in which it begins and the one in which it is done.
 *
 * The numbers are round ones, between the vendors' and Fog's tables for cores of the last ten years; they are fitted to
 * no pipeline. */
#include "core_model.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "line_arrivals.h"

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
    [INSERT] = {SHUFFLE_UNIT, 1, 1},
    [MASKED_STORE] = {STORE_UNIT, 0, 12},
    [GATHER] = {LOAD_UNIT, 12, 8},
};

/* How many there are of each; of the vectors' the kind of core says it. */
static uint8_t unit_counts[UNITS] = {
    [ALU_UNIT] = 4,       [MULTIPLY_UNIT] = 1,  [DIVIDE_UNIT] = 1,         [BRANCH_UNIT] = 1, [VECTOR_SHIFT_UNIT] = 2,
    [SHUFFLE_UNIT] = 2,   [FLOAT_ADD_UNIT] = 2, [FLOAT_MULTIPLY_UNIT] = 2, [CONVERT_UNIT] = 2, [LOAD_UNIT] = 2,
    [STORE_UNIT] = 1,     [REPLAY_UNIT] = 1,
};

const struct core_kind X86_CORE = {X86_SYNTAX, .fetched_per_cycle = 5, .vector_units = 3};
const struct core_kind AARCH64_CORE = {AARCH64_SYNTAX, .fetched_per_cycle = 4, .vector_units = 2};
const struct core_kind ARM_CORE = {ARM_SYNTAX, .fetched_per_cycle = 4, .vector_units = 2};

/* WINDOW: instructions that are under way at once. SPANS: of cycles ahead that units are booked for. STORE_BUFFER: stores
 * that have not reached the cache. */
enum { WINDOW = 256, SPAN_CYCLES = 64, SPANS = 16, STORES = 1024, STORE_BUFFER = 56 };
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

static struct span {
    uint64_t number, full; /* a bit for each cycle */
    uint8_t booked[SPAN_CYCLES];
} spans[UNITS][SPANS];

static struct {
    uint64_t place, cycle;
} stored[STORES];
static uint64_t written[STORE_BUFFER]; /* cycle in which each of the last stores is in the cache */
static uint64_t written_cycle, stores;

/* Serial numbers of what followed last time: after the last blocks (a long history), or else after this block alone. */
enum { LONG_GUESSES = 1 << 14, SHORT_GUESSES = 1 << 12 };
static struct {
    uint64_t key, next;
} long_guesses[LONG_GUESSES];
static uint64_t short_guesses[SHORT_GUESSES];
static uint64_t history;

void set_up_core(const struct core_kind *kind) {
    core = kind;
    unit_counts[VECTOR_UNIT] = kind->vector_units;
}

/* Of the 8 bytes that core_model.h tells an access by. */
static inline uint64_t line_of(uint64_t place) {
    return (place - 1) >> (LINE_BITS - 3);
}

/* Of 64 cycles of a unit, those in which it takes no more. What is older than the units are booked for is forgotten. */
static inline struct span *span_of(enum unit unit, uint64_t cycle) {
    struct span *span = &spans[unit][cycle / SPAN_CYCLES % SPANS];
    if (span->number != cycle / SPAN_CYCLES) {
        span->number = cycle / SPAN_CYCLES;
        span->full = 0;
        memset(span->booked, 0, sizeof span->booked);
    }
    return span;
}

static inline void take(enum unit unit, uint64_t cycle) {
    struct span *span = span_of(unit, cycle);
    const unsigned place = cycle % SPAN_CYCLES;
    if (++span->booked[place] >= unit_counts[unit]) span->full |= (uint64_t)1 << place;
}

/* The first cycle from `cycle` on in which the unit is free, and with it a second one; they are not any more. */
static inline uint64_t book(enum unit unit, uint64_t cycle, int busy_cycles, enum unit second) {
    for (;;) {
        uint64_t full = span_of(unit, cycle)->full;
        if (second != NO_UNIT) full |= span_of(second, cycle)->full;
        const uint64_t free_later = ~full >> cycle % SPAN_CYCLES;
        if (free_later) {
            cycle += (uint64_t)__builtin_ctzll(free_later);
            break;
        }
        cycle = (cycle / SPAN_CYCLES + 1) * SPAN_CYCLES;
    }
    if (second != NO_UNIT) take(second, cycle);
    for (int i = 0; i < busy_cycles; i++) take(unit, cycle + (uint64_t)i);
    return cycle;
}

static inline void hold_fetch(uint64_t cycle) {
    if (cycle <= fetch_cycle) return;
    fetch_cycle = cycle;
    fetched_in_cycle = 0;
}

static inline uint64_t fetch_part(void) {
    if (fetched_in_cycle == core->fetched_per_cycle) {
        fetch_cycle++;
        fetched_in_cycle = 0;
    }
    fetched_in_cycle++;
    return fetch_cycle;
}

static inline uint64_t fetch(void) {
    hold_fetch(leaving[fetched % WINDOW]);
    return fetch_part();
}

static inline uint64_t when_ready(const uint8_t *registers, int count, uint64_t cycle) {
    for (int i = 0; i < count; i++) cycle = later(cycle, ready[registers[i]]);
    return cycle;
}

/* An access in two lines takes its unit twice. */
static inline bool is_split(const uint64_t places[2]) {
    return line_of(places[0]) != line_of(places[1]);
}

/* Cycle in which a load has what it asked for: from the cache, or from a store that is not there yet. */
static uint64_t load(const struct core_instruction *instruction, uint64_t cycle) {
    const struct instruction_text *text = &instruction->text;
    cycle = book(LOAD_UNIT, when_ready(text->addresses, text->address_count, cycle), 1, NO_UNIT);
    if (is_split(instruction->loaded)) cycle = book(LOAD_UNIT, cycle + 1, 1, NO_UNIT);
    cycle = line_arrival(line_of(instruction->loaded[1]), instruction->access, false, cycle + LOAD_CYCLES);
    for (int i = 0; i < 2; i++) {
        const size_t place = instruction->loaded[i] % STORES;
        if (stored[place].place == instruction->loaded[i]) cycle = later(cycle, stored[place].cycle + FORWARD_CYCLES);
    }
    if (instruction->access.is_blocked) cycle = book(REPLAY_UNIT, cycle, REPLAY_CYCLES, NO_UNIT) + REPLAY_CYCLES;
    return cycle;
}

/* Cycle in which a store is on its way, and need not be waited for any more. It goes to the cache after all before it,
 * when its line is there. */
static uint64_t store(const struct core_instruction *instruction, uint64_t address_cycle, uint64_t value_cycle) {
    const uint64_t begin = later(address_cycle, value_cycle);
    /* What is loaded, changed and stored has asked for its line already. */
    const struct memory_access access = instruction->loaded[0] ? (struct memory_access){0} : instruction->access;
    const uint64_t here = line_arrival(line_of(instruction->stored[1]), access, true, address_cycle);
    const uint64_t turn = written_cycle + (is_split(instruction->stored) ? 2 : 1);
    written_cycle = later(turn, later(begin + 1, here));
    written[stores++ % STORE_BUFFER] = written_cycle;
    for (int i = 0; i < 2; i++) {
        const size_t place = instruction->stored[i] % STORES;
        stored[place].place = instruction->stored[i];
        stored[place].cycle = begin;
    }
    return book(STORE_UNIT, begin, 1, NO_UNIT) + 1;
}

/* Cycle in which what an insertion takes from a general register is among the vectors. */
static uint64_t transferred(const struct instruction_text *text, uint64_t cycle) {
    bool is_general = false;
    for (int i = 0; i < text->source_count; i++) {
        if (text->sources[i] >= FIRST_VECTOR) continue;
        is_general = true;
        cycle = later(cycle, ready[text->sources[i]]);
    }
    if (!is_general) return cycle;
    cycle = later(cycle, fetch_part());
    return book(COSTS[TRANSFER].unit, cycle, 1, VECTOR_UNIT) + COSTS[TRANSFER].cycles;
}

/* Cycle in which it is done. */
static uint64_t execute(struct core_instruction *instruction) {
    const struct instruction_text *text = &instruction->text;
    if (instruction->stored[0]) hold_fetch(written[stores % STORE_BUFFER]);
    const uint64_t fetched_cycle = fetch();
    uint64_t begin = fetched_cycle;
    if (instruction->loaded[0]) {
        begin = load(instruction, begin);
    } else if (!instruction->stored[0]) {
        begin = when_ready(text->addresses, text->address_count, begin); /* it computes with them */
    }
    begin = when_ready(text->sources, text->source_count, begin);
    if (text->operation == INSERT) begin = later(begin, transferred(text, fetched_cycle));
    const struct cost *cost = &COSTS[text->operation];
    const bool is_vector = text->operation > VECTOR_ALU && text->operation != GATHER;
    const enum unit second = is_vector ? VECTOR_UNIT : NO_UNIT;
    uint64_t done = begin;
    if (cost->unit != NO_UNIT) done = book(cost->unit, begin, cost->busy_cycles, second) + cost->cycles;
    if (instruction->stored[0]) {
        done = store(instruction, when_ready(text->addresses, text->address_count, fetched_cycle), done);
    }
    for (int i = 0; i < text->target_count; i++) ready[text->targets[i]] = done;
    instruction->loaded[0] = instruction->stored[0] = 0;
    instruction->access = (struct memory_access){0};
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
        hold_fetch(decided_cycle + REFILL_CYCLES);
        long_guesses[long_place].key = key;
        long_guesses[long_place].next = next;
    }
    short_guesses[short_place] = next;
    history = history << 5 ^ next;
}

static void end_block(void) {
    for (size_t i = 0; i < current->count; i++) decided_cycle = execute(&current->instructions[i]);
}

void begin_block(struct core_block *block, bool is_timed) {
    if (current) {
        if (is_timed) end_block();
        follow(current->serial, block->serial);
    }
    current = block;
}

void begin_system_call(bool is_timed) {
    if (current && is_timed) end_block();
    current = NULL;
    fetch_cycle = left_cycle;
    fetched_in_cycle = 0;
}

uint64_t core_cycles(void) {
    return left_cycle;
}
