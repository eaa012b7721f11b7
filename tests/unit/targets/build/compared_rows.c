/* What the comparison of outputs does with whole rows, for a test to call. */
#include "compare.c"

double largest(int code, int bits, const uint8_t *data, uint64_t elements) {
    const struct halide_type_t type = {.code = (uint8_t)code, .bits = (uint8_t)bits, .lanes = 1};
    return largest_finite(type, data, elements);
}

/* Whether a row agrees, at once or one element after the other; the largest error is written where it does. */
bool agrees(bool at_once, const uint8_t *expected, const uint8_t *actual, int64_t width, double relative,
            double absolute, double *largest_error) {
    struct comparison c = {.relative = relative, .absolute = absolute};
    const struct halide_type_t type = {.code = halide_type_float, .bits = 32, .lanes = 1};
    bool agree = true;
    if (at_once) {
        agree = singles_agree(&c, expected, actual, width);
    } else {
        for (int64_t x = 0; x < width; x++) {
            const double e = load_float(type, expected + 4 * x), a = load_float(type, actual + 4 * x);
            agree = floats_agree(&c, e, a) && agree;
        }
    }
    *largest_error = agree ? c.max_absolute_error : 0;
    return agree;
}
