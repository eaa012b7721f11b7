// An autoscheduler that computes every Func at root, in plain loops: slow, but it compiles when a code generator fails on
// other schedules, and never inlines a pipeline into one huge expression.

#include "Halide.h" // first: it is parsed once for all plug-ins

#include <string>
#include <vector>

#include "../pipeline/pipeline_parts.h"
#include "../pipeline/pipeline_reset.h"

namespace {

struct EverythingAtRoot {
    void operator()(const Halide::Pipeline &pipeline, const Halide::Target &, const Halide::AutoschedulerParams &,
                    Halide::AutoSchedulerResults *results) {
        const auto functions = halide_sdk_1::functions_of(pipeline);
        const std::vector<std::string> order = halide_sdk_1::order_of(pipeline, functions);
        for (size_t i = 0; i < order.size(); i++) {
            Halide::Func(functions.at(order[i])).compute_root();
            const std::string index = std::to_string(i), name = "func_" + index;
            results->schedule_source += "    Func " + name + " = pipeline.get_func(" + index + ");\n";
            results->schedule_source += "    " + name + ".compute_root();\n";
        }
    }
};

struct Register {
    Register() { Halide::Pipeline::add_autoscheduler("AllAtRoot", EverythingAtRoot()); }
} at_load;

}  // namespace
