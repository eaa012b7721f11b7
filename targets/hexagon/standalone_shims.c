/* What Halide's runtime for a standalone Hexagon (noos) leaves to its surroundings, where there is no system at all:
 * programs for Qualcomm's simulator, compiled with its SDK, whose headers these are. Parallel loops are Halide's own there:
 * one task after the other. */
#include <assert.h> /* this one and the next for the macros of some releases */
#include <stdio.h>

#include <hexagon_sim_timer.h>
#include <hexagon_standalone.h>

#include "runner.h"

/* A program must acquire the simulated vector unit before it uses it, and say that its vectors are the long ones; as in
 * Halide's src/runtime/hexagon_remote/sim_qurt.cpp. The macros are statements in some releases of the tools. */
int qurt_hvx_lock(int mode) {
    (void)mode; /* kernels have vectors of 128 bytes only */
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
