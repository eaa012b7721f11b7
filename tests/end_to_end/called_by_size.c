/* Calls separable_filter, of radius 1, at several sizes; says which kernels each call has run, and compares outputs with
 * the plain sum. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "HalideRuntime.h"

typedef struct halide_buffer_t *buffer_t;

int separable_filter(buffer_t input, buffer_t output);

static char called[200];

/* A bounds query is no call. */
#define COUNTED(KERNEL)                                                        \
    int __real_separable_filter_at_##KERNEL(buffer_t input, buffer_t output);  \
    int __wrap_separable_filter_at_##KERNEL(buffer_t input, buffer_t output);  \
    int __wrap_separable_filter_at_##KERNEL(buffer_t input, buffer_t output) { \
        if (input->host != NULL) strcat(called, " " #KERNEL);                  \
        return __real_separable_filter_at_##KERNEL(input, output);             \
    }
COUNTED(any_size)
COUNTED(192x96x3)
COUNTED(384x192x3)

static struct halide_buffer_t made(uint8_t *data, halide_dimension_t *dims, int width, int height) {
    dims[0] = (halide_dimension_t){0, width, 1, 0};
    dims[1] = (halide_dimension_t){0, height, width, 0};
    dims[2] = (halide_dimension_t){0, 3, width * height, 0};
    struct halide_buffer_t buffer = {0};
    buffer.host = data;
    buffer.type = (struct halide_type_t){halide_type_uint, 8, 1};
    buffer.dimensions = 3;
    buffer.dim = dims;
    return buffer;
}

static int at(const uint8_t *plane, int width, int height, int x, int y) {
    x = x < 0 ? 0 : x >= width ? width - 1 : x;
    y = y < 0 ? 0 : y >= height ? height - 1 : y;
    return plane[y * width + x];
}

/* The sum of all weights' products, rounded: the filter without any order of its steps. */
static int filtered(const uint8_t *plane, int width, int height, int x, int y) {
    static const int weights[3] = {1, 2, 1};
    int total = 1 << 3;
    for (int j = 0; j < 3; j++) {
        for (int i = 0; i < 3; i++) {
            total += weights[i] * weights[j] * at(plane, width, height, x + i - 1, y + j - 1);
        }
    }
    return total >> 4;
}

int main(void) {
    static const int sizes[][2] = {{192, 96}, {200, 100}, {384, 192}, {1000, 700}, {1, 1}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const int width = sizes[i][0], height = sizes[i][1], count = width * height * 3;
        uint8_t *from = malloc((size_t)count), *to = calloc((size_t)count, 1);
        if (from == NULL || to == NULL) return 2;
        for (int k = 0; k < count; k++) from[k] = (uint8_t)(k * 7919 % 251);
        halide_dimension_t dims[2][3];
        struct halide_buffer_t input = made(from, dims[0], width, height), output = made(to, dims[1], width, height);
        called[0] = 0;
        const int error = separable_filter(&input, &output);
        printf("%dx%dx3%s\n", width, height, called);
        for (int k = 0; error == 0 && k < count; k++) {
            const int plane = k / (width * height) * (width * height), x = k % width, y = (k - plane) / width;
            if (to[k] != filtered(from + plane, width, height, x, y)) {
                fprintf(stderr, "wrong at %dx%d: %d,%d\n", width, height, x, y);
                return 1;
            }
        }
        if (error != 0 && width > 1) return 3;
        free(from);
        free(to);
    }
    return 0;
}

/* What Halide reports is in the error codes. */
void halide_error(void *user_context, const char *message);
void halide_error(void *user_context, const char *message) {
    (void)user_context;
    (void)message;
}
