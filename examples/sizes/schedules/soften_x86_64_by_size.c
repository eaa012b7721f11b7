/* MACHINE GENERATED -- DO NOT EDIT
 *
 * soften for every size. It calls the kernel whose schedule is for the size that is nearest to that of output,
 * or the one for all sizes where that kernel does not take the buffers. Build the generator once as each of
 *
 *     soften_at_any_size
 *     soften_at_96x64
 *
 * with the schedule that the name says, and link all of them with this file. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "HalideRuntime.h"

#ifdef __cplusplus
extern "C" {
#endif

int soften_at_any_size(struct halide_buffer_t *a0_input, struct halide_buffer_t *a1_output);
int soften_at_96x64(struct halide_buffer_t *a0_input, struct halide_buffer_t *a1_output);
const struct halide_filter_metadata_t *soften_at_any_size_metadata(void);

int soften(struct halide_buffer_t *a0_input, struct halide_buffer_t *a1_output);
int soften_argv(void **args);
const struct halide_filter_metadata_t *soften_metadata(void);

/* Whether soften_at_96x64 takes these buffers as they are. */
static inline bool soften_at_96x64_takes(struct halide_buffer_t *a0_input, struct halide_buffer_t *a1_output) {
    struct halide_buffer_t *given[] = {a0_input, a1_output};
    struct halide_buffer_t asked[2];
    halide_dimension_t dimensions[2][8];
    for (int i = 0; i < 2; i++) {
        if (given[i] == NULL) return false;
        asked[i] = *given[i];
        asked[i].host = NULL;
        asked[i].device = 0;
        asked[i].device_interface = NULL;
        asked[i].dim = dimensions[i];
        if (given[i]->dimensions > 8) return false;
        for (int d = 0; d < given[i]->dimensions; d++) {
            dimensions[i][d] = given[i]->dim[d];
        }
    }
    /* Without memory it writes the regions that it would touch into the buffers. */
    if (soften_at_96x64(&asked[0], &asked[1]) != 0) return false;
    for (int i = 0; i < 2; i++) {
        for (int d = 0; d < given[i]->dimensions; d++) {
            const int64_t min = given[i]->dim[d].min, end = min + given[i]->dim[d].extent;
            const int64_t asked_min = dimensions[i][d].min, asked_end = asked_min + dimensions[i][d].extent;
            if (asked_min < min || asked_end > end) return false;
        }
    }
    return true;
}

/* The number of the nearest size: the product of the ratios of all extents is the smallest. */
static int nearest_size(const struct halide_buffer_t *buffer) {
    static const int32_t sizes[2][2] = {{96, 64}, {1920, 1080}};
    int nearest = 0;
    double least = 0;
    if (buffer == NULL || buffer->dimensions != 2) return -1;
    for (int i = 0; i < 2; i++) {
        double distance = 1;
        for (int d = 0; d < 2; d++) {
            const double extent = buffer->dim[d].extent, size = sizes[i][d];
            if (extent <= 0) return -1;
            distance *= extent > size ? extent / size : size / extent;
        }
        if (i == 0 || distance < least) {
            nearest = i;
            least = distance;
        }
    }
    return nearest;
}

int soften(struct halide_buffer_t *a0_input, struct halide_buffer_t *a1_output) {
    switch (nearest_size(a1_output)) {
        case 0:
            if (soften_at_96x64_takes(a0_input, a1_output)) return soften_at_96x64(a0_input, a1_output);
            break;
        default:
            break;
    }
    return soften_at_any_size(a0_input, a1_output);
}

int soften_argv(void **args) {
    return soften((struct halide_buffer_t *)args[0], (struct halide_buffer_t *)args[1]);
}

const struct halide_filter_metadata_t *soften_metadata(void) {
    return soften_at_any_size_metadata();
}

#ifdef __cplusplus
}
#endif
