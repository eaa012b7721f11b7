/* Compares outputs with the reference. */
#include <stdlib.h>
#include <string.h>

#include "runner.h"

/* A row is compared in parts of so many elements: where schedules round differently, few elements differ, and only
 * their parts are looked at one by one. */
enum { LONGEST_PART = 256 };

struct comparison {
    struct halide_type_t type;
    uint64_t integer_tolerance;
    double relative, absolute, far;
    uint64_t elements, mismatches, far_mismatches;
    double max_absolute_error; /* over pairs of finite values */
    int32_t first[MAX_DIMENSIONS];
    double first_expected, first_actual;
};

static double half_to_double(uint16_t bits) {
    const uint32_t exponent = (bits >> 10) & 31, mantissa = bits & 0x3ff;
    double value;
    if (exponent == 31) {
        const double infinity = 1e308 * 10;
        value = mantissa ? infinity - infinity : infinity;
    } else {
        value = exponent ? 1024.0 + mantissa : mantissa;
        for (uint32_t i = exponent ? exponent : 1; i < 25; i++) value *= 0.5;
        for (uint32_t i = 25; i < exponent; i++) value *= 2;
    }
    return bits >> 15 ? -value : value;
}

static double bfloat_to_double(uint16_t bits) {
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static double load_float(struct halide_type_t type, const uint8_t *address) {
    uint16_t narrow;
    float single;
    double value;
    if (type.bits == 64) {
        memcpy(&value, address, sizeof value);
    } else if (type.bits == 32) {
        memcpy(&single, address, sizeof single);
        value = single;
    } else {
        memcpy(&narrow, address, sizeof narrow);
        value = type.code == halide_type_bfloat ? bfloat_to_double(narrow) : half_to_double(narrow);
    }
    return value;
}

static bool is_float(struct halide_type_t type) {
    return type.code == halide_type_float || type.code == halide_type_bfloat;
}

/* Sign-extends signed types, so that differences of the uint64 are right for all types. */
static uint64_t load_integer(struct halide_type_t type, const uint8_t *address) {
    const size_t bytes = element_bytes(type);
    uint64_t value = 0;
    memcpy(&value, address, bytes);
    if (type.code == halide_type_int && bytes < 8 && value >> (8 * bytes - 1)) {
        value |= UINT64_MAX << (8 * bytes);
    }
    return value;
}

static double integer_to_double(struct halide_type_t type, uint64_t value) {
    return type.code == halide_type_int ? (double)(int64_t)value : (double)value;
}

static bool floats_agree(struct comparison *c, double expected, double actual) {
    if (expected == actual || (expected != expected && actual != actual)) return true;
    const double error = expected > actual ? expected - actual : actual - expected;
    if (error - error != 0) return false; /* only one side is infinite or NaN */
    if (error > c->max_absolute_error) c->max_absolute_error = error;
    return error <= c->relative * (expected < 0 ? -expected : expected) + c->absolute;
}

static bool integers_agree(struct comparison *c, uint64_t expected, uint64_t actual) {
    const bool larger = c->type.code == halide_type_int ? (int64_t)expected > (int64_t)actual : expected > actual;
    const uint64_t error = larger ? expected - actual : actual - expected;
    if ((double)error > c->max_absolute_error) c->max_absolute_error = (double)error;
    return error <= c->integer_tolerance;
}

static void compare_element(struct comparison *c, const uint8_t *expected, const uint8_t *actual,
                            const int32_t *coordinates, int64_t x) {
    double values[2];
    bool agree;
    if (is_float(c->type)) {
        values[0] = load_float(c->type, expected);
        values[1] = load_float(c->type, actual);
        agree = floats_agree(c, values[0], values[1]);
    } else {
        const uint64_t a = load_integer(c->type, expected), b = load_integer(c->type, actual);
        values[0] = integer_to_double(c->type, a);
        values[1] = integer_to_double(c->type, b);
        agree = integers_agree(c, a, b);
    }
    if (agree) return;
    /* Not "error > far": a NaN on one side only is far, too. */
    const double error = values[0] > values[1] ? values[0] - values[1] : values[1] - values[0];
    if (!(error <= c->far)) c->far_mismatches++;
    if (c->mismatches++ == 0) {
        memcpy(c->first, coordinates, sizeof c->first);
        c->first[0] += (int32_t)x;
        c->first_expected = values[0];
        c->first_actual = values[1];
    }
}

/* The largest magnitude of elements, as bits; of floats the largest finite one. Every schedule's output is compared, so
 * these are loops that compilers turn into vectors: the bits of magnitudes are in the order of the magnitudes. */
#define DEFINE_LARGEST(TYPE)                                                                                           \
    static uint64_t largest_##TYPE(const uint8_t *data, uint64_t elements, uint8_t code, TYPE infinity) {              \
        const TYPE sign = (TYPE)1 << (8 * sizeof(TYPE) - 1);                                                           \
        TYPE largest = 0, value;                                                                                       \
        for (uint64_t i = 0; i < elements; i++) {                                                                      \
            memcpy(&value, data + i * sizeof value, sizeof value);                                                     \
            if (code == halide_type_int) {                                                                             \
                value = value & sign ? (TYPE)(0 - value) : value;                                                      \
            } else if (code != halide_type_uint) {                                                                     \
                value = (TYPE)(value & ~sign);                                                                         \
                value = value < infinity ? value : 0;                                                                  \
            }                                                                                                          \
            largest = value > largest ? value : largest;                                                               \
        }                                                                                                              \
        return largest;                                                                                                \
    }

DEFINE_LARGEST(uint8_t)
DEFINE_LARGEST(uint16_t)
DEFINE_LARGEST(uint32_t)
DEFINE_LARGEST(uint64_t)

static double largest_finite(struct halide_type_t type, const uint8_t *data, uint64_t elements) {
    uint64_t bits = 0;
    switch (element_bytes(type)) {
    case 1: bits = largest_uint8_t(data, elements, type.code, 0); break;
    case 2:
        bits = largest_uint16_t(data, elements, type.code, type.code == halide_type_bfloat ? 0x7f80 : 0x7c00);
        break;
    case 4: bits = largest_uint32_t(data, elements, type.code, 0x7f800000); break;
    default: bits = largest_uint64_t(data, elements, type.code, 0x7ff0000000000000); break;
    }
    if (!is_float(type)) return (double)bits;
    const uint16_t half = (uint16_t)bits;
    const uint32_t single = (uint32_t)bits;
    const void *value = type.bits == 16 ? (const void *)&half : type.bits == 32 ? (const void *)&single : &bits;
    return load_float(type, value);
}

/* Whether all these floats agree, as `floats_agree` has it. It has no branches, and finds the largest error by its
 * bits, so that it becomes vectors, too. */
static bool singles_agree(struct comparison *c, const uint8_t *expected, const uint8_t *actual, int64_t count) {
    const double relative = c->relative, absolute = c->absolute;
    uint32_t largest = 0, disagrees = 0;
    for (int64_t x = 0; x < count; x++) {
        float singles[2];
        memcpy(&singles[0], expected + (size_t)x * sizeof(float), sizeof(float));
        memcpy(&singles[1], actual + (size_t)x * sizeof(float), sizeof(float));
        const double e = singles[0], a = singles[1], error = e > a ? e - a : a - e;
        const bool is_same = (e == a) | ((e != e) & (a != a));
        const bool is_close = (error <= relative * (e < 0 ? -e : e) + absolute) & (error - error == 0);
        const float told = is_same ? 0 : (float)error;
        uint32_t bits;
        memcpy(&bits, &told, sizeof bits);
        largest = bits > largest ? bits : largest;
        disagrees |= !(is_same | is_close);
    }
    float error;
    memcpy(&error, &largest, sizeof error);
    if (!disagrees && error > c->max_absolute_error) c->max_absolute_error = error;
    return !disagrees;
}

/* Compares a part of a row, whose actual elements are `step` bytes apart. */
static void compare_part(struct comparison *c, const uint8_t *expected, const uint8_t *actual, int64_t step,
                         const int32_t *coordinates, int64_t first, int64_t count) {
    const size_t element = element_bytes(c->type);
    const bool is_dense = step == (int64_t)element;
    expected += (size_t)first * element;
    actual += first * step;
    /* Equal bytes are equal values, also for NaN. */
    if (is_dense && memcmp(actual, expected, (size_t)count * element) == 0) return;
    if (is_dense && c->type.code == halide_type_float && c->type.bits == 32 && singles_agree(c, expected, actual, count)) {
        return;
    }
    for (int64_t x = 0; x < count; x++) {
        compare_element(c, expected + (size_t)x * element, actual + x * step, coordinates, first + x);
    }
}

static void compare_rows(struct comparison *c, const struct argument *argument, const struct reference_array *array) {
    const int64_t width = row_width(argument, array->common), step = row_step_bytes(argument);
    const uint64_t rows = row_count(argument, array->common);
    const uint8_t *reference = array->data;
    for (uint64_t row = 0; row < rows; row++, reference += (size_t)width * element_bytes(c->type)) {
        int32_t coordinates[MAX_DIMENSIONS] = {0};
        const uint8_t *actual = row_address(argument, array->common, row, coordinates);
        for (int64_t x = 0; x < width; x += LONGEST_PART) {
            const int64_t left = width - x;
            compare_part(c, reference, actual, step, coordinates, x, left < LONGEST_PART ? left : LONGEST_PART);
        }
    }
}

enum { BOX_TEXT_BYTES = 2 * MAX_DIMENSIONS * 12 + 1 };

/* Writes a box as an option --size has it. */
static const char *box_text(char *text, const halide_dimension_t *box, int dimensions) {
    bool has_mins = false;
    int length = 0;
    text[0] = 0;
    for (int d = 0; d < dimensions; d++) {
        length += snprintf(text + length, (size_t)(BOX_TEXT_BYTES - length), "%s%d", d ? "x" : "", (int)box[d].extent);
        has_mins = has_mins || box[d].min != 0;
    }
    for (int d = 0; d < dimensions && has_mins; d++) {
        length += snprintf(text + length, (size_t)(BOX_TEXT_BYTES - length), "%s%d", d ? "x" : "@", (int)box[d].min);
    }
    return text;
}

static void report(const struct comparison *c, const struct argument *argument, const struct reference_array *array,
                   bool accepted) {
    const int dimensions = argument->meta->dimensions;
    char text[BOX_TEXT_BYTES];
    event_begin("compared");
    event_string("output", argument->meta->name);
    event_string("computed", box_text(text, argument->dim, dimensions));
    event_string("reference", box_text(text, array->box, dimensions));
    event_string("common", box_text(text, array->common, dimensions));
    event_unsigned("elements", c->elements);
    event_unsigned("mismatches", c->mismatches);
    event_unsigned("far_mismatches", c->far_mismatches);
    event_number("max_absolute_error", c->max_absolute_error);
    event_boolean("accepted", accepted);
    event_open("first_mismatch", '[');
    for (int d = 0; d < argument->meta->dimensions && c->mismatches; d++) {
        event_integer(NULL, c->first[d]);
    }
    event_close(']');
    if (c->mismatches) {
        event_number("expected", c->first_expected);
        event_number("actual", c->first_actual);
    }
    event_end();
}

static uint64_t element_count(const struct argument *argument, const halide_dimension_t *box) {
    return row_count(argument, box) * (uint64_t)row_width(argument, box);
}

/* Fails if too little is computed by both. */
static void check_common(const struct argument *argument, const struct reference_array *array, double least) {
    const double common = (double)element_count(argument, array->common);
    const double own = (double)element_count(argument, argument->requested);
    const double other = (double)element_count(argument, array->box);
    char own_text[BOX_TEXT_BYTES], other_text[BOX_TEXT_BYTES];
    if (common >= least * own && common >= least * other) return;
    fail(EXIT_WRONG_OUTPUT, "wrong_output",
         "The output '%s' cannot be compared: the kernel computes %s, the reference %s, and %g %% of each must be computed "
         "by both.",
         argument->meta->name, box_text(own_text, argument->requested, argument->meta->dimensions),
         box_text(other_text, array->box, argument->meta->dimensions), 100 * least);
}

static bool compare_output(const struct argument *argument, const struct reference_array *array,
                           const struct tolerance *tolerance) {
    struct comparison c = {
        .type = argument->meta->type,
        .integer_tolerance = tolerance->integer,
        .relative = tolerance->float_relative,
        .elements = element_count(argument, array->common),
    };
    const double absolute_scale = is_float(c.type) ? tolerance->float_absolute_scale : 0;
    if (absolute_scale > 0 || tolerance->far_scale > 0) {
        const double largest = largest_finite(c.type, array->data, c.elements);
        c.absolute = absolute_scale * largest;
        c.far = tolerance->far_scale * largest;
    }
    compare_rows(&c, argument, array);
    const bool accepted = (double)c.mismatches <= tolerance->mismatch_share * (double)c.elements &&
                          (double)c.far_mismatches <= tolerance->far_share * (double)c.elements;
    report(&c, argument, array, accepted);
    return accepted;
}

bool compare_outputs(const struct invocation *invocation, const char *path, const struct tolerance *tolerance) {
    bool accepted = true;
    FILE *file = open_reference(path);
    for (int i = 0; i < invocation->count; i++) {
        const struct argument *argument = &invocation->arguments[i];
        if (!is_output(argument)) continue;
        struct reference_array array;
        read_reference_array(file, path, argument, &array);
        check_common(argument, &array, tolerance->least_common);
        if (!compare_output(argument, &array, tolerance)) accepted = false;
        free(array.data);
    }
    close_reference(file, path, invocation);
    return accepted;
}
