// A whole number in a lowered pipeline of which loops, lanes and data decide parts.

#ifndef HALIDE_SDK_VALUE
#define HALIDE_SDK_VALUE

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "Halide.h"

namespace halide_sdk {

// What a number is in the middle of the loops around it, and in a vector's first lane. Where data decides, it is any of
// `number`, `number + step` and so on up to `most`.
struct Value {
    static constexpr double unbounded = std::numeric_limits<double>::infinity();

    // Whether data decides nothing of it: `most` is `number` then.
    bool is_known = false;
    double number = -unbounded, most = unbounded, step = 1;
    // By loop, the outermost first, what a step of it adds. Of those that are left out it is 0.
    std::vector<double> slopes;
    // From one lane to the next; nothing where lanes lie in more than one such step.
    std::optional<double> lane_slope = 0;

    static Value of(double number) { return {true, number, number, 1, {}, 0}; }

    double slope(size_t loop) const { return loop < slopes.size() ? slopes[loop] : 0; }
    double number_or(double other) const { return is_known ? number : other; }
    bool is_bounded() const { return std::isfinite(number) && std::isfinite(most); }
    // How many numbers it may be.
    double steps() const { return std::floor((most - number) / step) + 1; }

    // Of those a type has no more numbers than it can hold; what goes beyond is any of them, as it wraps around.
    Value within(const Halide::Type &type) const {
        constexpr int most_bits = 16;
        if (is_known || type.is_float() || type.is_handle() || type.bits() > most_bits) return *this;
        const double count = std::pow(2.0, type.bits()), least = type.is_int() ? -count / 2 : 0;
        if (number >= least && most <= least + count - 1) return *this;
        return {false, least, least + count - 1, 1, {}, 0};
    }

    // The same numbers, with slopes that are `one` of the first's and `other` of the second's.
    Value moving(const Value &a, double one, const Value &b, double other) const {
        Value value = *this;
        value.slopes.assign(std::max(a.slopes.size(), b.slopes.size()), 0);
        for (size_t i = 0; i < value.slopes.size(); i++) value.slopes[i] = one * a.slope(i) + other * b.slope(i);
        value.lane_slope = std::nullopt;
        if (a.lane_slope && b.lane_slope) value.lane_slope = one * *a.lane_slope + other * *b.lane_slope;
        return value;
    }
};

// The step between what two may be together.
inline double step_of(const Value &a, const Value &b) {
    if (a.is_known || b.is_known) return a.is_known ? b.step : a.step;
    return std::min(a.step, b.step);
}

inline Value sum(const Value &a, const Value &b) {
    const Value value{a.is_known && b.is_known, a.number + b.number, a.most + b.most, step_of(a, b), {}, 0};
    return value.moving(a, 1, b, 1);
}

inline Value product(const Value &a, const Value &b) {
    if (a.is_known && b.is_known) return Value::of(a.number * b.number).moving(a, b.number, b, a.number);
    if (!a.is_known && !b.is_known) return {};
    const Value &any = a.is_known ? b : a;
    const double times = (a.is_known ? a : b).number;
    if (times == 0) return {false, 0, 0, 1, {}, 0};
    const auto [least, most] = std::minmax(times * any.number, times * any.most);
    return Value{false, least, most, std::abs(times) * any.step, {}, 0}.moving(any, times, any, 0);
}

inline Value difference(const Value &a, const Value &b) { return sum(a, product(b, Value::of(-1))); }

// Rounded down, as Halide rounds. What moves by parts of the divisor is rounded by as much as it is in the mean: what
// lies between two such values is then as much as it is in the mean, too. The slope is that of what is not rounded.
inline Value quotient(const Value &a, const Value &b) {
    if (!b.is_known || (b.number <= 0 && !a.is_known)) return {};
    if (b.number == 0) return Value::of(0);
    Value value = Value::of(0);
    if (a.is_known) {
        const auto is_whole = [&](double slope) { return std::fmod(slope, b.number) == 0; };
        const bool is_exact = std::all_of(a.slopes.begin(), a.slopes.end(), is_whole);
        const double rounded = (b.number - 1) / 2;
        value = Value::of(is_exact ? std::floor(a.number / b.number) : (a.number - rounded) / b.number);
    } else {
        const double step = std::max(1.0, a.step / b.number);
        value = {false, std::floor(a.number / b.number), std::floor(a.most / b.number), step, {}, 0};
    }
    return value.moving(a, 1 / b.number, b, 0);
}

// What moves by whole periods does not move.
inline Value rest(const Value &a, const Value &b) {
    if (!b.is_known || (b.number <= 0 && !a.is_known)) return {};
    if (b.number == 0) return Value::of(0);
    if (!a.is_known) {
        const bool is_itself = a.number >= 0 && a.most < b.number;
        return is_itself ? a : Value{false, 0, b.number - 1, 1, {}, 0};
    }
    Value value = Value::of(a.number - b.number * std::floor(a.number / b.number)).moving(a, 1, b, 0);
    for (double &slope : value.slopes) {
        if (std::fmod(slope, b.number) == 0) slope = 0;
    }
    return value;
}

// The less of two, or the greater. What is kept within bounds moves as it would without.
inline Value chosen(const Value &a, const Value &b, bool is_least) {
    if (a.is_known && b.is_known) return (a.number <= b.number) == is_least ? a : b;
    const auto of = [&](double one, double other) { return is_least ? std::min(one, other) : std::max(one, other); };
    const Value value{false, of(a.number, b.number), of(a.most, b.most), step_of(a, b), {}, 0};
    return value.moving(a.is_known ? b : a, 1, a, 0);
}

// One of two, as data decides; it moves as the first does.
inline Value either(const Value &a, const Value &b) {
    const double least = std::min(a.number, b.number), most = std::max(a.most, b.most);
    const bool are_two = a.is_known && b.is_known && least < most;
    return Value{false, least, most, are_two ? most - least : step_of(a, b), {}, 0}.moving(a, 1, b, 0);
}

}  // namespace halide_sdk

#endif
