/* Functions that Halide's runtime for a standalone Hexagon (noos) lacks without a system: for programs of Qualcomm's
 * simulator, compiled with the SDK, whose headers these are. Halide's own parallel loops run one task after the other. */
#include <assert.h> /* this and the next, for the macros of some releases */
#include <stdio.h>

#include <hexagon_sim_timer.h>
#include <hexagon_standalone.h>

#include "runner.h"

/* A program must acquire the simulated vector unit before it uses it, and select the long vectors, as in Halide's
 * src/runtime/hexagon_remote/sim_qurt.cpp. In some releases of the tools the macros are statements. */
int qurt_hvx_lock(int mode) {
    (void)mode; /* kernels only have vectors of 128 bytes */
    SIM_ACQUIRE_HVX;
    SIM_SET_HVX_DOUBLE_MODE;
    return 0;
}

int qurt_hvx_unlock(void) {
    SIM_RELEASE_HVX;
    return 0;
}

uint64_t processor_cycles(void) {
    return hexagon_sim_read_pcycles();
}
