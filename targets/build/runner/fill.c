/* Makes input data: a hash of (seed, argument, absolute coordinates), so that an element has the same value whatever
 * margin a schedule needs. Floats are in [0, 1), 8- and 16-bit integers have their full range, wider integers
 * are in [0, 1023], booleans are 0 or 1. The mixers are splitmix64 (Steele, Lea, Flood 2014) for rows and
 * C. Wellons' lowbias32 for elements. */
#include <string.h>

#include "runner.h"

static uint64_t mix64(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline uint32_t element_hash(uint64_t row_hash, int64_t x) {
    uint32_t h = ((uint32_t)x * 0x9e3779b9u + (uint32_t)row_hash) ^ (uint32_t)(row_hash >> 32);
    h = (h ^ (h >> 16)) * 0x7feb352du;
    h = (h ^ (h >> 15)) * 0x846ca68bu;
    return h ^ (h >> 16);
}

/* k / 2048 as the bits of an IEEE half, exact for 0 <= k < 2048. */
static inline uint16_t half_of_2048ths(uint32_t k) {
    if (k == 0) return 0;
    uint32_t top = 0;
    while (k >> (top + 1)) top++;
    return (uint16_t)(((top + 4) << 10) | ((k << (10 - top)) & 0x3ff));
}

/* k / 256 as the bits of a bfloat16, exact for 0 <= k < 256. */
static inline uint16_t bfloat_of_256ths(uint32_t k) {
    const float value = (float)k * (1.0f / 256);
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

/* Fills one row; the case without gaps is apart, so that the compiler vectorises it. */
#define DEFINE_ROW(name, type, expression)                                                \
    static void name(void *row, int64_t stride, int64_t x0, int64_t count, uint64_t hash) { \
        type *out = row;                                                                  \
        if (stride == 1) {                                                                \
            for (int64_t i = 0; i < count; i++) {                                         \
                const uint32_t h = element_hash(hash, x0 + i);                            \
                out[i] = (type)(expression);                                              \
            }                                                                             \
        } else {                                                                          \
            for (int64_t i = 0; i < count; i++) {                                         \
                const uint32_t h = element_hash(hash, x0 + i);                            \
                out[i * stride] = (type)(expression);                                     \
            }                                                                             \
        }                                                                                 \
    }

DEFINE_ROW(row_bool, uint8_t, h >> 31)
DEFINE_ROW(row_8, uint8_t, h >> 24)
DEFINE_ROW(row_16, uint16_t, h >> 16)
DEFINE_ROW(row_32, uint32_t, h >> 22)
DEFINE_ROW(row_64, uint64_t, h >> 22)
DEFINE_ROW(row_half, uint16_t, half_of_2048ths(h >> 21))
DEFINE_ROW(row_bfloat, uint16_t, bfloat_of_256ths(h >> 24))
DEFINE_ROW(row_float, float, (float)(h >> 8) * (1.0f / 16777216))
DEFINE_ROW(row_double, double, (double)h * (1.0 / 4294967296))

typedef void (*fill_row)(void *row, int64_t stride, int64_t x0, int64_t count, uint64_t hash);

static fill_row choose_row(const struct argument *argument) {
    const struct halide_type_t type = argument->meta->type;
    if (type.code == halide_type_bfloat && type.bits == 16) return row_bfloat;
    if (type.code == halide_type_float) {
        if (type.bits == 16) return row_half;
        if (type.bits == 32) return row_float;
        if (type.bits == 64) return row_double;
    } else if (type.code == halide_type_int || type.code == halide_type_uint) {
        if (type.bits == 1) return row_bool;
        if (type.bits == 8) return row_8;
        if (type.bits == 16) return row_16;
        if (type.bits == 32) return row_32;
        if (type.bits == 64) return row_64;
    }
    fail(EXIT_USAGE, "usage", "The buffer '%s' has elements of type %s%d, which are not supported.",
         argument->meta->name, type_code_name(type.code), type.bits);
}

void fill_input(struct argument *argument, uint64_t seed) {
    const fill_row fill = choose_row(argument);
    const int64_t width = row_width(argument, argument->dim);
    const int64_t stride = argument->meta->dimensions > 0 ? argument->dim[0].stride : 1;
    const uint64_t rows = row_count(argument, argument->dim);
    const uint64_t start = mix64(mix64(seed) ^ (uint64_t)argument->index);
    for (uint64_t row = 0; row < rows; row++) {
        int32_t coordinates[MAX_DIMENSIONS] = {0};
        uint8_t *address = row_address(argument, argument->dim, row, coordinates);
        uint64_t hash = start;
        for (int d = 1; d < argument->meta->dimensions; d++) {
            hash = mix64(hash ^ (uint32_t)coordinates[d]);
        }
        fill(address, stride, coordinates[0], width, hash);
    }
    argument->buffer.flags |= halide_buffer_flag_host_dirty;
}
