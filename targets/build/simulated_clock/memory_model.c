/* Set-associative caches with least-recently-used replacement, streams that stand for the prefetchers, the pages that
 * have been touched, and what the store buffer holds. Everything is decided by the order of the guest's addresses
 * alone. */
#include "memory_model.h"

#include <stdlib.h>
#include <string.h>

/* A level is looked up when the one before has missed; the sets keep the line used last in front. */
struct level {
    uint64_t *lines; /* `ways` of every set; 0: empty (nothing lies at address 0) */
    uint64_t set_mask;
    uint64_t ways;
};

struct memory_counts memory_counts;

static struct level levels[LEVELS];
static uint64_t last_line, last_page;

/* The addresses of pages are looked up like lines: a page stands for a line. */
static struct level page_levels[PAGE_LEVELS];
static const uint64_t PAGE_ENTRIES[PAGE_LEVELS] = {64, 1536};

/* Who wrote each 8 bytes last: the number of the store. The last few stores are still on their way to the cache: a load
 * of what one of them wrote is served from the store buffer, but one that needs other bytes too has to wait. */
enum { GRANULE_BITS = 3, GRANULES = 256, STORES_ON_THEIR_WAY = 8, PARTS_OF_VECTOR = 4 };

static struct {
    uint64_t granule;
    uint64_t store;
} written[GRANULES];

/* The parts of one vector access follow each other; this is the access that the last part was of. */
static struct {
    const void *instruction;
    uint64_t granule;
    uint64_t store; /* of a load: the store on its way that the parts come from, 0: from the cache */
    int parts;
    bool blocked;
} current;

static uint64_t stores = STORES_ON_THEIR_WAY; /* so that no place looks as if it had just been written */

/* The prefetchers: one follows lines that lie side by side, the other what single instructions do. */
enum { STREAMS = 16, STRIDES = 256, LONGEST_STRIDE = 2048 >> LINE_BITS };

static uint64_t stream_ends[STREAMS]; /* the last line of each stream, the one used last in front */

static struct {
    const void *instruction;
    uint64_t line;
    int64_t stride; /* in lines */
} strides[STRIDES];

/* Touched pages: a bit each, in leaves of 4096 pages below two tables of 4096 entries. */
enum { TABLE_BITS = 12, TABLE_ENTRIES = 1 << TABLE_BITS, LEAF_WORDS = TABLE_ENTRIES / 64, FEWEST_WAYS = 8 };

static uint64_t **page_tables[TABLE_ENTRIES];

static bool set_up_level(struct level *level, uint64_t size_bytes) {
    const uint64_t lines = size_bytes >> LINE_BITS;
    if (lines == 0) return true;
    uint64_t sets = 1;
    while (sets * 2 * FEWEST_WAYS <= lines) sets *= 2;
    level->set_mask = sets - 1;
    level->ways = lines / sets; /* 8 to 15: whatever the size, nearly all of it is used */
    level->lines = calloc(sets * level->ways, sizeof *level->lines);
    return level->lines;
}

bool set_up_memory_model(const uint64_t size_bytes[LEVELS]) {
    for (int i = 0; i < LEVELS; i++) {
        if (!set_up_level(&levels[i], size_bytes[i])) return false;
    }
    for (int i = 0; i < PAGE_LEVELS; i++) {
        if (!set_up_level(&page_levels[i], PAGE_ENTRIES[i] << LINE_BITS)) return false;
    }
    return true;
}

/* True when the line was there; it is in front afterwards. */
static inline bool look_up(const struct level *level, uint64_t line) {
    uint64_t *set = level->lines + (line & level->set_mask) * level->ways;
    if (set[0] == line) return true;
    uint64_t way = 1;
    while (way < level->ways && set[way] != line) way++;
    const bool hit = way < level->ways;
    if (!hit) way--;
    memmove(set + 1, set, way * sizeof *set);
    set[0] = line;
    return hit;
}

/* True when the line is the next one of a stream, up or down. */
static bool continue_stream(uint64_t line) {
    int i = 0;
    while (i < STREAMS - 1 && stream_ends[i] + 1 != line && stream_ends[i] - 1 != line) i++;
    const bool found = stream_ends[i] + 1 == line || stream_ends[i] - 1 == line;
    memmove(stream_ends + 1, stream_ends, (size_t)i * sizeof *stream_ends);
    stream_ends[0] = line;
    return found;
}

/* True when the instruction has come here in two equal steps that are not too long. */
static bool continue_stride(uint64_t line, const void *instruction) {
    const size_t place = (uintptr_t)instruction % STRIDES;
    const bool known = strides[place].instruction == instruction;
    const int64_t stride = known ? (int64_t)(line - strides[place].line) : 0;
    const bool is_short = stride >= -LONGEST_STRIDE && stride <= LONGEST_STRIDE;
    const bool found = known && is_short && stride == strides[place].stride;
    strides[place].instruction = instruction;
    strides[place].line = line;
    strides[place].stride = stride;
    return found;
}

static void miss(uint64_t line, const void *instruction, struct memory_access *access) {
    const bool in_stream = continue_stream(line), in_stride = continue_stride(line, instruction);
    access->is_foreseen = in_stream || in_stride;
    uint64_t *counts = access->is_foreseen ? memory_counts.sequential : memory_counts.random;
    counts[0]++;
    for (uint8_t i = 1; i < LEVELS; i++) {
        access->level = i;
        if (!levels[i].lines) continue;
        if (look_up(&levels[i], line)) return;
        counts[i]++;
    }
    access->level = LEVELS;
}

/* The leaf of a page, or NULL where there is none and none is to be made. */
static uint64_t *leaf_of(uint64_t page, bool make) {
    uint64_t ***table = &page_tables[(page >> 2 * TABLE_BITS) & (TABLE_ENTRIES - 1)];
    if (!*table && make) *table = calloc(TABLE_ENTRIES, sizeof **table);
    if (!*table) return NULL;
    uint64_t **leaf = &(*table)[(page >> TABLE_BITS) & (TABLE_ENTRIES - 1)];
    if (!*leaf && make) *leaf = calloc(LEAF_WORDS, sizeof **leaf);
    return *leaf;
}

static void touch_page(uint64_t page) {
    uint64_t *leaf = leaf_of(page, true);
    if (!leaf) abort(); /* out of memory: the emulator ends in the same way */
    const uint64_t place = page & (TABLE_ENTRIES - 1), bit = (uint64_t)1 << (place & 63);
    if (leaf[place / 64] & bit) return;
    leaf[place / 64] |= bit;
    memory_counts.fresh_pages++;
}

/* True when it is a load of what a store on its way has written in part. */
static bool follow_store_buffer(uint64_t address, bool is_store, bool is_8_bytes, const void *instruction) {
    const uint64_t granule = address >> GRANULE_BITS;
    const bool continues = is_8_bytes && instruction == current.instruction && granule == current.granule + 1 &&
                           current.parts < PARTS_OF_VECTOR;
    if (!continues) {
        current.instruction = instruction;
        current.parts = 0;
        current.blocked = false;
        stores += is_store;
    }
    current.granule = granule;
    current.parts++;
    const uint64_t place = granule & (GRANULES - 1);
    if (is_store) {
        written[place].granule = granule;
        written[place].store = stores;
        return false;
    }
    const bool on_its_way = written[place].granule == granule && written[place].store + STORES_ON_THEIR_WAY > stores;
    const uint64_t store = on_its_way ? written[place].store : 0;
    current.blocked |= current.parts > 1 && store != current.store;
    current.store = store;
    return current.blocked;
}

static inline void access_line(uint64_t address, const void *instruction, struct memory_access *access) {
    const uint64_t line = address >> LINE_BITS;
    if (line == last_line) return;
    last_line = line;
    const uint64_t page = address >> PAGE_BITS;
    if (page != last_page) {
        last_page = page;
        touch_page(page);
        while (access->page_level < PAGE_LEVELS && !look_up(&page_levels[access->page_level], page)) {
            access->page_level++;
        }
    }
    if (!look_up(&levels[0], line)) miss(line, instruction, access);
}

struct memory_access access_memory(uint64_t address, bool is_store, bool is_8_bytes, const void *instruction) {
    struct memory_access access = {.is_blocked = follow_store_buffer(address, is_store, is_8_bytes, instruction)};
    access_line(address, instruction, &access);
    return access;
}

void warm_up_memory(uint64_t address, const void *instruction) {
    struct memory_access unused = {.level = 0};
    access_line(address, instruction, &unused);
}

void forget_pages(uint64_t address, uint64_t size_bytes) {
    const uint64_t first = address >> PAGE_BITS;
    const uint64_t end = (address + size_bytes + (1 << PAGE_BITS) - 1) >> PAGE_BITS;
    last_line = last_page = 0;
    for (uint64_t page = first; page < end; page++) {
        uint64_t *leaf = leaf_of(page, false);
        if (leaf) {
            const uint64_t place = page & (TABLE_ENTRIES - 1);
            leaf[place / 64] &= ~((uint64_t)1 << (place & 63));
        } else {
            page |= TABLE_ENTRIES - 1; /* nothing of this leaf was touched */
        }
    }
}
