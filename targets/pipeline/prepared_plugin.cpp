// An autoscheduler that prepares the pipeline for another one and runs that: it takes off the schedule that the
// generator has applied, and gives the estimates that it has not.
//
// Parameters, besides those of the other autoscheduler: `prepared_for` (its name), `estimates` (see estimates.h),
// `keeps_schedule` (any text: the generator's own schedule stays).

#include "Halide.h" // first: it is parsed once for all plug-ins

#include <string>

#include "estimates.h"
#include "pipeline_reset.h"

namespace {

std::string take(Halide::AutoschedulerParams &parameters, const std::string &key) {
    const std::string value = parameters.extra[key];
    parameters.extra.erase(key);
    return value;
}

struct Prepared {
    void operator()(const Halide::Pipeline &pipeline, const Halide::Target &target,
                    const Halide::AutoschedulerParams &given, Halide::AutoSchedulerResults *results) {
        Halide::AutoschedulerParams parameters = given;
        parameters.name = take(parameters, "prepared_for");
        if (take(parameters, "keeps_schedule").empty()) halide_sdk_1::reset_pipeline(pipeline);
        halide_sdk_1::set_estimates(pipeline, halide_sdk_1::parse_estimates(take(parameters, "estimates")));
        *results = pipeline.apply_autoscheduler(target, parameters);
    }
};

struct Register {
    Register() { Halide::Pipeline::add_autoscheduler("SdkPrepared", Prepared()); }
} at_load;

}  // namespace
