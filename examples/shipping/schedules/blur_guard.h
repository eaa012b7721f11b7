#ifndef blur_GUARD_H
#define blur_GUARD_H

/* MACHINE GENERATED -- DO NOT EDIT
 *
 * Build the generator twice: as blur_tuned with its shipped schedule, and as blur_fallback with one that takes
 * every size. blur_guarded calls the first wherever it can. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blur_fallback.h"
#include "blur_tuned.h"
#include "HalideRuntime.h"

/* Whether the tuned kernel takes these buffers as they are. */
static inline bool blur_takes(struct halide_buffer_t *a0_input, struct halide_buffer_t *a1_output) {
    struct halide_buffer_t *given[] = {a0_input, a1_output};
    struct halide_buffer_t asked[2];
    halide_dimension_t dimensions[2][8];
    for (int i = 0; i < 2; i++) {
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
    if (blur_tuned(&asked[0], &asked[1]) != 0) return false;
    for (int i = 0; i < 2; i++) {
        for (int d = 0; d < given[i]->dimensions; d++) {
            const int64_t min = given[i]->dim[d].min, end = min + given[i]->dim[d].extent;
            const int64_t asked_min = dimensions[i][d].min, asked_end = asked_min + dimensions[i][d].extent;
            if (asked_min < min || asked_end > end) return false;
        }
    }
    return true;
}

/* The tuned kernel where it takes the size, else the fallback; returns Halide's error code, 0 when all is well. */
static inline int blur_guarded(struct halide_buffer_t *a0_input, struct halide_buffer_t *a1_output) {
    if (blur_takes(a0_input, a1_output)) return blur_tuned(a0_input, a1_output);
    return blur_fallback(a0_input, a1_output);
}

#endif
