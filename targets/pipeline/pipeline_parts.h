// What a pipeline is made of: its outputs, its inputs, and the order of its Funcs.

#ifndef HALIDE_SDK_PIPELINE_PARTS
#define HALIDE_SDK_PIPELINE_PARTS

#include <map>
#include <string>
#include <vector>

#include "Halide.h"

namespace halide_sdk_1 {

inline std::vector<Halide::Internal::Function> outputs_of(const Halide::Pipeline &pipeline) {
    std::vector<Halide::Internal::Function> outputs;
    for (const Halide::Func &output : pipeline.outputs()) outputs.push_back(output.function());
    return outputs;
}

inline std::vector<Halide::Internal::InferredArgument> inputs_of(const Halide::Pipeline &pipeline) {
    return Halide::Internal::infer_arguments(Halide::Internal::Stmt(), outputs_of(pipeline));
}

// The names of the pipeline's Funcs (see functions_of), producers first: Pipeline::get_func counts in this order.
inline std::vector<std::string> order_of(const Halide::Pipeline &pipeline,
                                         const std::map<std::string, Halide::Internal::Function> &functions) {
    return Halide::Internal::topological_order(outputs_of(pipeline), functions);
}

}  // namespace halide_sdk_1

#endif
