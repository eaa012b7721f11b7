// An autoscheduler that runs another one, writes the features of the schedule it finds, and ends the process.
//
// A generator that emits only a featurization still lowers the whole pipeline, which takes several times as long as a
// greedy search. For most sampled schedules the features for the cost model are enough, so they end here.
//
// Parameters, besides those of the other autoscheduler: `search` (its name), `featurization_path`, and `explains`: 1 has
// the other one say what it does, so that its log names the Func where it came to a dead end.

#include "Halide.h" // first: it is parsed once for all plug-ins

#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>

namespace {

[[noreturn]] void fail(const std::string &message) {
    std::fprintf(stderr, "%s\n", message.c_str());
    _exit(1);
}

std::string take(Halide::AutoschedulerParams &parameters, const std::string &key) {
    const auto found = parameters.extra.find(key);
    if (found == parameters.extra.end()) fail("SdkSearch: the parameter " + key + " is missing");
    std::string value = found->second;
    parameters.extra.erase(found);
    return value;
}

struct SearchOnly {
    void operator()(const Halide::Pipeline &pipeline, const Halide::Target &target,
                    const Halide::AutoschedulerParams &given, Halide::AutoSchedulerResults *) {
        Halide::AutoschedulerParams parameters = given;
        parameters.name = take(parameters, "search");
        const std::string path = take(parameters, "featurization_path");
        if (take(parameters, "explains") == "1") setenv("HL_DEBUG_AUTOSCHEDULE", "1", 1);
        Halide::Pipeline scheduled = pipeline;
        const auto results = scheduled.apply_autoscheduler(target, parameters);
        const auto &features = results.featurization;
        FILE *file = std::fopen(path.c_str(), "wb");
        if (file == nullptr) fail("SdkSearch: cannot write " + path);
        const bool written = std::fwrite(features.data(), 1, features.size(), file) == features.size();
        if (std::fclose(file) != 0 || !written) fail("SdkSearch: cannot write " + path);
        _exit(0);
    }
};

struct Register {
    Register() { Halide::Pipeline::add_autoscheduler("SdkSearch", SearchOnly()); }
} at_load;

}  // namespace
