// What integer expressions of a lowered pipeline are at its estimates, in the middle of the loops around them, and how
// far a step of each of these loops moves them.

#ifndef HALIDE_SDK_VALUES_AT_ESTIMATES
#define HALIDE_SDK_VALUES_AT_ESTIMATES

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "Halide.h"
#include "../pipeline/pipeline_parts.h"
#include "value.h"

namespace halide_sdk {

// The sizes and scalars of the pipeline's arguments, by the names that they have in the lowered statement.
class EstimatedArguments {
public:
    explicit EstimatedArguments(const Halide::Pipeline &pipeline) {
        for (const auto &input : halide_sdk_1::inputs_of(pipeline)) {
            if (input.param.defined()) add(input.param);
            if (input.buffer.defined()) add(input.buffer);
        }
        for (const auto &output : halide_sdk_1::outputs_of(pipeline)) {
            for (const Halide::Parameter &buffer : output.output_buffers()) add(output, buffer);
        }
    }

    const std::map<std::string, double> &values() const { return values_; }

private:
    std::map<std::string, double> values_;

    void set(const std::string &name, const Halide::Expr &expr) {
        if (!expr.defined()) return;
        const auto value = Halide::Internal::as_const_int(Halide::Internal::simplify(expr));
        if (value) values_[name] = static_cast<double>(*value);
    }

    void add(const Halide::Parameter &parameter) {
        if (!parameter.is_buffer()) {
            set(parameter.name(), parameter.estimate());
            return;
        }
        for (int i = 0; i < parameter.dimensions(); i++) {
            set(place(parameter.name(), "min", i), parameter.min_constraint_estimate(i));
            set(place(parameter.name(), "extent", i), parameter.extent_constraint_estimate(i));
        }
        add_strides(parameter);
    }

    void add(const Halide::Internal::Function &output, const Halide::Parameter &buffer) {
        for (const auto &estimate : output.schedule().estimates()) {
            for (int i = 0; i < output.dimensions(); i++) {
                if (output.args()[i] != estimate.var) continue;
                set(place(buffer.name(), "min", i), estimate.min);
                set(place(buffer.name(), "extent", i), estimate.extent);
            }
        }
        add_strides(buffer);
    }

    void add(const Halide::Buffer<> &table) {
        for (int i = 0; i < table.dimensions(); i++) {
            values_[place(table.name(), "min", i)] = table.dim(i).min();
            values_[place(table.name(), "extent", i)] = table.dim(i).extent();
            values_[place(table.name(), "stride", i)] = table.dim(i).stride();
        }
    }

    // As Halide's own buffers have them where nothing else is asked for: each dimension follows the one before.
    void add_strides(const Halide::Parameter &buffer) {
        double stride = 1;
        for (int i = 0; i < buffer.dimensions(); i++) {
            values_[place(buffer.name(), "stride", i)] = stride;
            set(place(buffer.name(), "stride", i), buffer.stride_constraint(i));
            const auto extent = values_.find(place(buffer.name(), "extent", i));
            if (extent != values_.end()) stride *= extent->second;
        }
    }

    static std::string place(const std::string &name, const char *what, int dimension) {
        return name + "." + what + "." + std::to_string(dimension);
    }
};

// A loop around an expression; a branch is one without a name.
struct LoopAround {
    std::string name;
    // 1 where data decides.
    double extent;
};

// Evaluates integer expressions. What data decides is unknown but for its bounds.
//
// What a name stands for is evaluated again where a loop is at its first iteration: much is computed there and later
// found again, so that the middle of the loop says nothing of it.
class ValuesAtEstimates {
public:
    explicit ValuesAtEstimates(const std::map<std::string, double> &arguments) : arguments_(arguments) {}

    void push(const std::string &name, const Halide::Expr &expr) {
        known_[name].emplace_back(Known{expr, std::nullopt, 0, {}});
        named(name);
    }

    // A loop with so many loops around it.
    void push_loop(const std::string &name, const Halide::Expr &min, double extent, size_t depth) {
        known_[name].emplace_back(Known{min, depth, std::floor(extent / 2), {}});
        named(name);
    }

    void pop(const std::string &name) { known_[name].pop_back(); }

    // What `evaluate` returns while a loop is at its first iteration.
    template<typename Evaluate>
    auto in_first_iteration(const std::string &loop, Evaluate evaluate) {
        struct Restored {
            ValuesAtEstimates &values;
            const std::string &loop;
            const size_t before;
            ~Restored() {
                values.first_.erase(loop);
                values.state_ = before;
            }
        } restored{*this, loop, state_};
        first_.insert(loop);
        state_ = states_.emplace(first_, states_.size()).first->second;
        return evaluate();
    }

    // In how much of what the loops around it run a condition holds; nothing where data decides.
    //
    // They are the outermost first. The two sides of a comparison are taken to be as far apart as in the middle of the
    // loops, and to move evenly from there: of one loop that is exact.
    std::optional<double> share(const Halide::Expr &condition, const std::vector<LoopAround> &loops) {
        using namespace Halide::Internal;
        if (const auto *op = condition.as<And>()) return least(share(op->a, loops), share(op->b, loops));
        if (const auto *op = condition.as<Or>()) {
            return rest_of(least(rest_of(share(op->a, loops)), rest_of(share(op->b, loops))));
        }
        if (const auto *op = condition.as<Not>()) return rest_of(share(op->a, loops));
        if (const auto *op = condition.as<LT>()) return share_below(op->a, op->b, loops);
        if (const auto *op = condition.as<LE>()) return rest_of(share_below(op->b, op->a, loops));
        if (const auto *op = condition.as<GT>()) return share_below(op->b, op->a, loops);
        if (const auto *op = condition.as<GE>()) return rest_of(share_below(op->a, op->b, loops));
        if (const auto *op = condition.as<Variable>()) {
            const auto known = conditions_.find(op->name);
            if (known != conditions_.end()) return share(known->second, loops);
        }
        if (const auto *op = condition.as<Call>()) {
            const bool is_marked = op->is_intrinsic(Call::likely) || op->is_intrinsic(Call::likely_if_innermost);
            if (is_marked) return share(op->args[0], loops);
        }
        const Value value = of(condition);
        if (!value.is_known) return std::nullopt;
        return value.number != 0 ? 1.0 : 0.0;
    }

    // A name that stands for a condition. It is bound once.
    void name_condition(const std::string &name, const Halide::Expr &condition) { conditions_[name] = condition; }

    Value of(const Halide::Expr &expr) {
        if (!expr.defined() || expr.type().is_float()) return {};
        return whole_number(expr).within(expr.type());
    }

private:
    // What a name stands for: a value, or a loop from its first value on.
    struct Known {
        Halide::Expr expr;
        // How many loops are around a loop.
        std::optional<size_t> depth;
        double steps_to_middle;
        // By state.
        std::map<size_t, Value> values;
    };

    const std::map<std::string, double> &arguments_;
    // Of a name that is bound again inside, the last one counts. What is added to a deque moves nothing in it.
    std::map<std::string, std::deque<Known>> known_;
    std::map<std::string, Halide::Expr> conditions_;
    // The loops that are at their first iteration, and a number for each such set.
    std::set<std::string> first_;
    std::map<std::set<std::string>, size_t> states_ = {{{}, 0}};
    size_t state_ = 0;

    Value whole_number(const Halide::Expr &expr) {
        using namespace Halide::Internal;
        if (const auto *op = expr.as<IntImm>()) return Value::of(static_cast<double>(op->value));
        if (const auto *op = expr.as<UIntImm>()) return Value::of(static_cast<double>(op->value));
        if (const auto *op = expr.as<Variable>()) return named(op->name);
        if (const auto *op = expr.as<Add>()) return sum(of(op->a), of(op->b));
        if (const auto *op = expr.as<Sub>()) return difference(of(op->a), of(op->b));
        if (const auto *op = expr.as<Mul>()) return product(of(op->a), of(op->b));
        if (const auto *op = expr.as<Div>()) return quotient(of(op->a), of(op->b));
        if (const auto *op = expr.as<Mod>()) return rest(of(op->a), of(op->b));
        if (const auto *op = expr.as<Min>()) return chosen(of(op->a), of(op->b), true);
        if (const auto *op = expr.as<Max>()) return chosen(of(op->a), of(op->b), false);
        if (const auto *op = expr.as<Select>()) return selected(of(op->condition), op->true_value, op->false_value);
        if (const auto *op = expr.as<Cast>()) return of(op->value);
        if (const auto *op = expr.as<Ramp>()) return ramp(of(op->base), of(op->stride), op->base.type().is_scalar());
        if (const auto *op = expr.as<Broadcast>()) return of(op->value);
        if (const auto *op = expr.as<Let>()) return let(op);
        if (const auto *op = expr.as<Call>()) return call(op);
        return condition(expr);
    }

    // A vector whose lanes are so far apart.
    static Value ramp(Value first, const Value &stride, bool is_of_scalars) {
        first.lane_slope = std::nullopt;
        if (is_of_scalars && stride.is_known) first.lane_slope = stride.number;
        return first;
    }

    static std::optional<double> rest_of(std::optional<double> share) {
        if (share) share = 1 - *share;
        return share;
    }

    // Of two that hold together; what data decides is left out of it.
    static std::optional<double> least(std::optional<double> a, std::optional<double> b) {
        if (!a || !b) return a ? a : b;
        return std::min(*a, *b);
    }

    // In how much of it `a` is less than `b`.
    std::optional<double> share_below(const Halide::Expr &a, const Halide::Expr &b,
                                      const std::vector<LoopAround> &loops) {
        const Value apart = difference(of(a), of(b));
        if (!apart.is_known) return std::nullopt;
        double mean = apart.number, reach = 0, least_step = 0;
        size_t moving = 0;
        for (size_t i = 0; i < loops.size(); i++) {
            const double slope = apart.slope(i), extent = loops[i].extent;
            if (slope == 0) continue;
            moving++;
            reach += std::abs(slope) * extent / 2;
            mean += slope * ((extent - 1) / 2 - std::floor(extent / 2));
            least_step = moving == 1 ? std::abs(slope) : std::min(least_step, std::abs(slope));
        }
        if (moving == 0) return apart.number < 0 ? 1.0 : 0.0;
        if (moving == 1) {
            // The steps that are below, from the least one on.
            const double steps = 2 * reach / least_step, least = mean - (steps - 1) / 2 * least_step;
            return std::min(1.0, std::max(0.0, std::ceil(-least / least_step) / steps));
        }
        return std::min(1.0, std::max(0.0, (reach - mean - least_step / 2) / (2 * reach)));
    }

    // A name that is an argument's has the argument's value.
    Value named(const std::string &name) {
        const auto argument = arguments_.find(name);
        if (argument != arguments_.end()) return Value::of(argument->second);
        const auto found = known_.find(name);
        if (found == known_.end() || found->second.empty()) return {};
        Known &known = found->second.back();
        // Until it is evaluated it is unknown: it may stand for something that had the same name.
        const auto added = known.values.emplace(state_, Value{});
        if (added.second) added.first->second = evaluated(name, known);
        return added.first->second;
    }

    Value evaluated(const std::string &name, const Known &known) {
        Value value = of(known.expr);
        if (!known.depth || first_.count(name)) return value;
        value.number += known.steps_to_middle;
        value.most += known.steps_to_middle;
        value.slopes.resize(*known.depth + 1);
        value.slopes[*known.depth] = 1;
        return value;
    }

    Value selected(const Value &condition, const Halide::Expr &if_true, const Halide::Expr &if_false) {
        if (!condition.is_known) return either(of(if_true), of(if_false));
        return of(condition.number != 0 ? if_true : if_false);
    }

    Value let(const Halide::Internal::Let *op) {
        push(op->name, op->value);
        const Value value = of(op->body);
        pop(op->name);
        return value;
    }

    Value call(const Halide::Internal::Call *op) {
        using Halide::Internal::Call;
        const auto is = [&](Call::IntrinsicOp intrinsic) { return op->is_intrinsic(intrinsic); };
        if (is(Call::likely) || is(Call::likely_if_innermost) || is(Call::promise_clamped) ||
            is(Call::unsafe_promise_clamped)) {
            return of(op->args[0]);
        }
        if (is(Call::if_then_else)) {
            return op->args.size() == 3 ? selected(of(op->args[0]), op->args[1], op->args[2]) : of(op->args[1]);
        }
        const auto of_both = [&](auto operation) { return operation(of(op->args[0]), of(op->args[1])); };
        if (is(Call::widening_add) || is(Call::widen_right_add)) return of_both(sum);
        if (is(Call::widening_sub) || is(Call::widen_right_sub)) return of_both(difference);
        if (is(Call::widening_mul) || is(Call::widen_right_mul)) return of_both(product);
        const bool is_left = is(Call::shift_left) || is(Call::widening_shift_left);
        if (!is_left && !is(Call::shift_right)) return {};
        const Value by = of(op->args[1]);
        if (!by.is_known || by.number < 0) return {};
        const Value power = Value::of(std::pow(2.0, by.number));
        return is_left ? product(of(op->args[0]), power) : quotient(of(op->args[0]), power);
    }

    // 1 where a condition holds, else 0.
    Value condition(const Halide::Expr &expr) {
        using namespace Halide::Internal;
        if (const auto *op = expr.as<LT>()) return compared(op->a, op->b, [](double a, double b) { return a < b; });
        if (const auto *op = expr.as<LE>()) return compared(op->a, op->b, [](double a, double b) { return a <= b; });
        if (const auto *op = expr.as<GT>()) return compared(op->a, op->b, [](double a, double b) { return a > b; });
        if (const auto *op = expr.as<GE>()) return compared(op->a, op->b, [](double a, double b) { return a >= b; });
        if (const auto *op = expr.as<EQ>()) return compared(op->a, op->b, [](double a, double b) { return a == b; });
        if (const auto *op = expr.as<NE>()) return compared(op->a, op->b, [](double a, double b) { return a != b; });
        if (const auto *op = expr.as<And>()) return both(of(op->a), of(op->b), false);
        if (const auto *op = expr.as<Or>()) return both(of(op->a), of(op->b), true);
        if (const auto *op = expr.as<Not>()) {
            const Value value = of(op->a);
            return value.is_known ? Value::of(value.number == 0) : Value{};
        }
        return {};
    }

    template<typename Compare>
    Value compared(const Halide::Expr &a, const Halide::Expr &b, Compare compare) {
        const Value one = of(a), other = of(b);
        return one.is_known && other.is_known ? Value::of(compare(one.number, other.number)) : Value{};
    }

    // Of two conditions: one of them may decide alone.
    static Value both(const Value &a, const Value &b, bool decides) {
        for (const Value &value : {a, b}) {
            if (value.is_known && (value.number != 0) == decides) return Value::of(decides);
        }
        return a.is_known && b.is_known ? Value::of(!decides) : Value{};
    }
};

}  // namespace halide_sdk

#endif
