/* Calls the guarded blur at many sizes and compares with the fallback's result. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blur_guard.h"

enum { LARGEST = 700 };

static uint16_t input_data[LARGEST * LARGEST], output_data[LARGEST * LARGEST], expected_data[LARGEST * LARGEST];

static struct halide_buffer_t buffer(uint16_t *data, halide_dimension_t *dims, int width, int height, int min) {
    dims[0] = (halide_dimension_t){min, width, 1, 0};
    dims[1] = (halide_dimension_t){-min, height, width, 0};
    struct halide_buffer_t made = {0};
    made.host = (uint8_t *)data;
    made.type = (struct halide_type_t){halide_type_uint, 16, 1};
    made.dimensions = 2;
    made.dim = dims;
    return made;
}

int main(void) {
    static const int sizes[][3] = {{1, 1, 0}, {7, 5, 3}, {64, 64, 0}, {333, 1, -2}, {2, 500, 0}, {699, 523, 9}, {700, 700, 0}};
    int tuned = 0, fallback = 0, wrong = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const int width = sizes[i][0], height = sizes[i][1], min = sizes[i][2];
        for (int k = 0; k < width * height; k++) input_data[k] = (uint16_t)(k * 7919 % 65521);
        halide_dimension_t dims[3][2];
        struct halide_buffer_t input = buffer(input_data, dims[0], width, height, min);
        struct halide_buffer_t output = buffer(output_data, dims[1], width, height, min);
        struct halide_buffer_t expected = buffer(expected_data, dims[2], width, height, min);
        if (blur_takes(&input, &output)) {
            tuned++;
        } else {
            fallback++;
        }
        memset(output_data, 0xa5, sizeof output_data);
        if (blur_guarded(&input, &output) != 0 || blur_fallback(&input, &expected) != 0) return 1;
        const size_t bytes = (size_t)width * (size_t)height * sizeof output_data[0];
        if (memcmp(output_data, expected_data, bytes) != 0) wrong++;
    }
    printf("{\"tuned\": %d, \"fallback\": %d, \"wrong\": %d}\n", tuned, fallback, wrong);
    return 0;
}
