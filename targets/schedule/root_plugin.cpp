// An autoscheduler that computes every Func at root, in plain loops: slow, but it compiles when a code generator fails on
// other schedules, and never inlines a pipeline into one huge expression.

#include <map>
#include <string>
#include <vector>

#include "Halide.h"

namespace {

struct EverythingAtRoot {
    void operator()(const Halide::Pipeline &pipeline, const Halide::Target &, const Halide::AutoschedulerParams &,
                    Halide::AutoSchedulerResults *results) {
        std::map<std::string, Halide::Internal::Function> functions;
        std::vector<Halide::Internal::Function> outputs;
        for (const Halide::Func &output : pipeline.outputs()) {
            outputs.push_back(output.function());
            const auto called = Halide::Internal::find_transitive_calls(output.function());
            functions.insert(called.begin(), called.end());
        }
        // Pipeline::get_func counts in this order.
        const std::vector<std::string> order = Halide::Internal::topological_order(outputs, functions);
        for (size_t i = 0; i < order.size(); i++) {
            Halide::Func(functions.at(order[i])).compute_root();
            results->schedule_source += "    pipeline.get_func(" + std::to_string(i) + ").compute_root();\n";
        }
    }
};

struct Register {
    Register() { Halide::Pipeline::add_autoscheduler("AllAtRoot", EverythingAtRoot()); }
} at_load;

}  // namespace
