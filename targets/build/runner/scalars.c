/* Sets the values of scalar arguments. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runner.h"

#define LARGEST_HALF 65504.0
#define LARGEST_BFLOAT 0x1.fep127

static _Noreturn void bad_scalar(const struct argument *argument, const char *text) {
    fail(EXIT_USAGE, "usage", "--scalar %s got '%s'; expected a value of type %s%d.", argument->meta->name, text,
         type_code_name(argument->meta->type.code), argument->meta->type.bits);
}

static void parse_bool(struct argument *argument, const char *text) {
    if (strcmp(text, "1") == 0 || strcmp(text, "true") == 0) {
        argument->scalar.u.b = true;
    } else if (strcmp(text, "0") == 0 || strcmp(text, "false") == 0) {
        argument->scalar.u.b = false;
    } else {
        bad_scalar(argument, text);
    }
}

/* The nearest float of 16 bits, with so many bits of mantissa, the first of which is not stored. */
static uint16_t bits_of_16(double value, int mantissa_bits, int least_exponent) {
    int exponent;
    frexp(value, &exponent);
    if (value == 0 || exponent < least_exponent + 1) exponent = least_exponent + 1; /* subnormal */
    /* The first bit of the mantissa is not stored, so that it adds one to the exponent. */
    const double mantissa = nearbyint(ldexp(fabs(value), mantissa_bits - exponent));
    const int stored_exponent = exponent - least_exponent - 1;
    return (uint16_t)((signbit(value) ? 0x8000 : 0) + (stored_exponent << (mantissa_bits - 1)) + (int)mantissa);
}

static void parse_float_of_16(struct argument *argument, const char *text, double value) {
    const bool is_half = argument->meta->type.code == halide_type_float;
    if (!(fabs(value) <= (is_half ? LARGEST_HALF : LARGEST_BFLOAT))) bad_scalar(argument, text);
    argument->scalar.u.u16 = is_half ? bits_of_16(value, 11, -14) : bits_of_16(value, 8, -126);
}

static void parse_float(struct argument *argument, const char *text) {
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end) bad_scalar(argument, text);
    if (argument->meta->type.bits == 64) {
        argument->scalar.u.f64 = value;
    } else if (argument->meta->type.bits == 16) {
        parse_float_of_16(argument, text, value);
    } else if (argument->meta->type.bits == 32) {
        if (value - value == 0 && (value > (double)FLT_MAX || value < (double)-FLT_MAX)) bad_scalar(argument, text);
        argument->scalar.u.f32 = (float)value;
    } else {
        bad_scalar(argument, text);
    }
}

static void parse_signed(struct argument *argument, const char *text) {
    const int bits = argument->meta->type.bits;
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    const int64_t largest = bits == 64 ? INT64_MAX : ((int64_t)1 << (bits - 1)) - 1;
    if (end == text || *end || errno || value > largest || value < -largest - 1) bad_scalar(argument, text);
    argument->scalar.u.i64 = value; /* the low bytes come first, so this is right for every width */
}

static void parse_unsigned(struct argument *argument, const char *text) {
    const int bits = argument->meta->type.bits;
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    const uint64_t largest = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    if (text[0] < '0' || text[0] > '9' || *end || errno || value > largest) bad_scalar(argument, text);
    argument->scalar.u.u64 = value;
}

static void parse_scalar(struct argument *argument, const char *text) {
    const struct halide_type_t type = argument->meta->type;
    if (type.code == halide_type_float || type.code == halide_type_bfloat) {
        parse_float(argument, text);
    } else if (type.code == halide_type_int) {
        parse_signed(argument, text);
    } else if (type.code == halide_type_uint && type.bits == 1) {
        parse_bool(argument, text);
    } else if (type.code == halide_type_uint) {
        parse_unsigned(argument, text);
    } else {
        bad_scalar(argument, text);
    }
}

void set_scalar(struct argument *argument, const char *text) {
    const struct halide_filter_argument_t *meta = argument->meta;
    memset(&argument->scalar, 0, sizeof argument->scalar);
    if (text) {
        parse_scalar(argument, text);
    } else if (argument->estimated->scalar_estimate) {
        argument->scalar = *argument->estimated->scalar_estimate;
    } else if (meta->scalar_def) {
        argument->scalar = *meta->scalar_def;
    } else if (meta->type.code != halide_type_handle) { /* a handle (the user context) is a null pointer */
        fail(EXIT_USAGE, "usage",
             "The scalar '%s' has no estimate: call set_estimate on it in the generator, or give --scalar %s=VALUE.",
             meta->name, meta->name);
    }
}
