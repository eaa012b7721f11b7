// Estimates as text: `input:0+1920,0+1080;gain:1.5` gives a buffer's minimum and extent by dimension, and a scalar's
// value; with nothing after the colon, those of the generator do not count.

#ifndef HALIDE_SDK_ESTIMATES
#define HALIDE_SDK_ESTIMATES

#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "Halide.h"
#include "pipeline_parts.h"

namespace halide_sdk_1 {

struct Range {
    int min, extent;
};

struct Estimates {
    std::map<std::string, std::vector<Range>> buffers;
    std::map<std::string, std::string> scalars;
    std::set<std::string> left_out;
};

inline Estimates parse_estimates(const std::string &text) {
    Estimates estimates;
    std::istringstream entries(text);
    for (std::string entry; std::getline(entries, entry, ';');) {
        const size_t colon = entry.rfind(':');
        const std::string name = entry.substr(0, colon), value = entry.substr(colon + 1);
        if (value.empty()) {
            estimates.left_out.insert(name);
            continue;
        }
        // A range is a minimum, a plus and an extent; of 1e+10 the plus belongs to the exponent.
        const size_t digits = value.find_first_not_of("0123456789", value[0] == '-');
        if (digits == std::string::npos || value[digits] != '+') {
            // A scalar, or the only dimension of a buffer.
            estimates.scalars[name] = value;
            estimates.buffers[name] = {{0, std::atoi(value.c_str())}};
            continue;
        }
        std::istringstream ranges(value);
        for (std::string range; std::getline(ranges, range, ',');) {
            const size_t plus = range.find('+', 1);
            estimates.buffers[name].push_back({std::atoi(range.c_str()), std::atoi(range.c_str() + plus + 1)});
        }
    }
    return estimates;
}

// A scalar parameter's value from its text.
inline Halide::Expr scalar_value(const Halide::Type &type, const std::string &text) {
    if (text == "true") return Halide::Internal::make_one(type);
    if (type.is_float()) return Halide::Internal::make_const(type, std::strtod(text.c_str(), nullptr));
    if (type.is_uint()) {
        return Halide::Internal::make_const(type, static_cast<uint64_t>(std::strtoull(text.c_str(), nullptr, 0)));
    }
    return Halide::Internal::make_const(type, static_cast<int64_t>(std::strtoll(text.c_str(), nullptr, 0)));
}

inline void set_estimate(Halide::Parameter parameter, const Estimates &estimates) {
    if (!parameter.is_buffer()) {
        const auto found = estimates.scalars.find(parameter.name());
        if (found != estimates.scalars.end()) parameter.set_estimate(scalar_value(parameter.type(), found->second));
        return;
    }
    const auto found = estimates.buffers.find(parameter.name());
    if (found == estimates.buffers.end()) return;
    for (int i = 0; i < parameter.dimensions() && i < static_cast<int>(found->second.size()); i++) {
        parameter.set_min_constraint_estimate(i, found->second[i].min);
        parameter.set_extent_constraint_estimate(i, found->second[i].extent);
    }
}

// Outputs are named `#0`, `#1`, … by their place, because a Func's name need not be its argument's.
inline void set_estimates(const Halide::Pipeline &pipeline, const Estimates &estimates) {
    std::vector<Halide::Internal::Function> outputs = outputs_of(pipeline);
    for (size_t k = 0; k < outputs.size(); k++) {
        const auto found = estimates.buffers.find("#" + std::to_string(k));
        if (found == estimates.buffers.end()) continue;
        Halide::Internal::Function &function = outputs[k];
        auto &of_output = function.schedule().estimates();
        of_output.clear();
        for (size_t i = 0; i < function.args().size() && i < found->second.size(); i++) {
            of_output.push_back({function.args()[i], found->second[i].min, found->second[i].extent, Halide::Expr(),
                                 Halide::Expr()});
        }
        for (Halide::Parameter buffer : function.output_buffers()) {
            for (int d = 0; d < buffer.dimensions() && d < static_cast<int>(found->second.size()); d++) {
                buffer.set_min_constraint_estimate(d, found->second[d].min);
                buffer.set_extent_constraint_estimate(d, found->second[d].extent);
            }
        }
    }
    for (const auto &argument : inputs_of(pipeline)) {
        if (argument.param.defined()) set_estimate(argument.param, estimates);
    }
}

}  // namespace halide_sdk_1

#endif
