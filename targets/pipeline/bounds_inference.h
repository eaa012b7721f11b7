// The sizes of buffers that follow from the sizes of others, by interval arithmetic over a pipeline's definitions.

#ifndef HALIDE_SDK_BOUNDS_INFERENCE
#define HALIDE_SDK_BOUNDS_INFERENCE

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "Halide.h"
#include "pipeline_parts.h"
#include "pipeline_reset.h"

namespace halide_sdk_1 {

using Halide::Expr;
using Halide::Internal::Box;
using Halide::Internal::Function;
using Halide::Internal::Interval;

// What is known of parameters: their values, extents and minima by the names of Halide's variables for them.
using Values = std::map<std::string, Expr>;

inline Expr known(const Expr &expr, const Values &values) {
    return expr.defined() ? Halide::Internal::simplify(Halide::Internal::substitute(values, expr)) : expr;
}

class RegionsRequired {
public:
    explicit RegionsRequired(const Halide::Pipeline &pipeline)
        : functions_(functions_of(pipeline)), order_(order_of(pipeline, functions_)) {
        value_bounds_ = Halide::Internal::compute_function_value_bounds(order_, functions_);
    }

    // The region of each input, by its parameter's name, that the outputs' regions need.
    std::map<std::string, Box> of_inputs(const std::map<std::string, Box> &outputs, const Values &values) const {
        return without(of_all(outputs, values), functions_);
    }

    // The same of every Func and every input.
    std::map<std::string, Box> of_all(const std::map<std::string, Box> &outputs, const Values &values) const {
        std::map<std::string, Box> regions = outputs;
        for (auto name = order_.rbegin(); name != order_.rend(); ++name) {
            const Function &function = functions_.at(*name);
            Box &region = regions[*name];
            if (static_cast<int>(region.size()) != function.dimensions()) continue;  // nothing needs it
            use_own_estimates(function, region);
            for (const auto &needed : needed_by(function, region, values)) {
                Halide::Internal::merge_boxes(regions[needed.first], needed.second);
            }
        }
        for (auto &entry : regions) {
            for (Interval &interval : entry.second.bounds) {
                interval = {known(interval.min, values), known(interval.max, values)};
            }
        }
        return regions;
    }

    const std::map<std::string, Function> &functions() const { return functions_; }
    const std::vector<std::string> &order() const { return order_; }

private:
    std::map<std::string, Function> functions_;
    std::vector<std::string> order_;
    Halide::Internal::FuncValueBounds value_bounds_;

    static std::map<std::string, Box> without(std::map<std::string, Box> regions,
                                              const std::map<std::string, Function> &functions) {
        for (const auto &function : functions) regions.erase(function.first);
        return regions;
    }

    // Where an index depends on data, the generator may say what to expect.
    static void use_own_estimates(const Function &function, Box &region) {
        for (const auto &estimate : function.schedule().estimates()) {
            for (size_t i = 0; i < region.size(); i++) {
                const bool is_open = !region[i].is_bounded() || !Halide::Internal::is_const(region[i].min) ||
                                     !Halide::Internal::is_const(region[i].max);
                if (function.args()[i] == estimate.var && is_open && estimate.min.defined()) {
                    region[i] = Interval(estimate.min, estimate.min + estimate.extent - 1);
                }
            }
        }
    }

    std::map<std::string, Box> needed_by(const Function &function, const Box &region, const Values &values) const {
        std::map<std::string, Box> needed;
        std::vector<Halide::Internal::Definition> definitions = {function.definition()};
        definitions.insert(definitions.end(), function.updates().begin(), function.updates().end());
        for (const auto &definition : definitions) {
            Halide::Internal::Scope<Interval> scope;
            for (size_t i = 0; i < region.size(); i++) {
                scope.push(function.args()[i], {known(region[i].min, values), known(region[i].max, values)});
            }
            for (const auto &rvar : definition.schedule().rvars()) {
                const Expr min = known(rvar.min, values);
                scope.push(rvar.var, {min, known(min + rvar.extent - 1, values)});
            }
            std::vector<Expr> read = definition.values();
            read.insert(read.end(), definition.args().begin(), definition.args().end());
            for (const Expr &expr : read) {
                const Expr with_values = known(expr, values);
                for (const auto &box : Halide::Internal::boxes_required(with_values, scope, value_bounds_)) {
                    if (box.first != function.name()) Halide::Internal::merge_boxes(needed[box.first], box.second);
                }
            }
        }
        return needed;
    }
};

// The interval's least number and how many there are, where both are numbers.
inline std::optional<std::pair<int64_t, int64_t>> constant_range(const Interval &interval) {
    if (!interval.is_bounded()) return std::nullopt;
    const auto min = Halide::Internal::as_const_int(interval.min), max = Halide::Internal::as_const_int(interval.max);
    if (!min || !max || *max < *min) return std::nullopt;
    return std::make_pair(*min, *max - *min + 1);
}

}  // namespace halide_sdk_1

#endif
