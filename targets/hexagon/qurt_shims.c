/* What the runner and Halide's runtime for QuRT need on a device's DSP, by the headers of Qualcomm's SDK. The DSP has
 * threads, vector contexts and tightly coupled memory: it resolves their names when it loads the program. */
#include <string.h>

#include <HAP_perf.h>
#include <HAP_power.h>

#include "runner.h"

static int power_client; /* its address identifies the client */

uint64_t processor_cycles(void) {
    return HAP_perf_get_pcycles();
}

static bool ask_for_power(HAP_power_request_t request) {
    return HAP_power_set(&power_client, &request) == 0;
}

/* One fixed corner, the highest that every release of the SDK has. The request ends with the process. */
static bool fix_clock(void) {
    HAP_power_request_t request;
    memset(&request, 0, sizeof request);
    request.type = HAP_power_set_DCVS_v2;
    request.dcvs_v2.dcvs_enable = FALSE;
    request.dcvs_v2.dcvs_option = HAP_DCVS_V2_PERFORMANCE_MODE;
    request.dcvs_v2.set_latency = TRUE;
    request.dcvs_v2.latency = 100; /* microseconds */
    request.dcvs_v2.set_dcvs_params = TRUE;
    request.dcvs_v2.dcvs_params.min_corner = HAP_DCVS_VCORNER_TURBO;
    request.dcvs_v2.dcvs_params.max_corner = HAP_DCVS_VCORNER_TURBO;
    request.dcvs_v2.dcvs_params.target_corner = HAP_DCVS_VCORNER_TURBO;
    return ask_for_power(request);
}

bool hold_clock(void) {
    HAP_power_request_t request;
    memset(&request, 0, sizeof request);
    request.type = HAP_power_set_apptype;
    request.apptype = HAP_POWER_COMPUTE_CLIENT_CLASS;
    const bool is_known = ask_for_power(request);
    const bool is_fixed = fix_clock();
    memset(&request, 0, sizeof request);
    request.type = HAP_power_set_HVX;
    request.hvx.power_up = TRUE;
    const bool has_vectors = ask_for_power(request);
    return is_known && is_fixed && has_vectors;
}
