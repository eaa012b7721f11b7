// The scheduling calls of Halide as a table: from a call in JSON to the call.
#ifndef HALIDE_SDK_SCHEDULE_CALLS
#define HALIDE_SDK_SCHEDULE_CALLS

#include <map>
#include <string>
#include <vector>

#include "Halide.h"
#include "../pipeline/json.h"

namespace halide_sdk {

using Halide::Expr;
using Halide::Func;
using Halide::LoopLevel;
using Halide::Parameter;
using Halide::Stage;
using Halide::Var;
using Halide::VarOrRVar;

[[noreturn]] inline void refuse(const std::string &what) {
    _halide_user_error << "The schedule cannot be applied: " << what << ".\n";
    std::abort();  // not reached: the line above throws
}

template<typename T>
const T &found(const std::map<std::string, T> &known, const std::string &name, const char *what) {
    const auto place = known.find(name);
    if (place == known.end()) refuse("there is no " + std::string(what) + " '" + name + "'");
    return place->second;
}

// The value of an enumeration: "TailStrategy::RoundUp".
template<typename T>
struct Values {
    std::string type;
    std::vector<std::pair<std::string, T>> values;

    T operator()(const Json &json) const {
        for (const auto &value : values) {
            if (json.text == type + "::" + value.first) return value.second;
        }
        refuse("'" + json.text + "' is not a " + type);
    }
};

#define VALUE(name) {#name, Type::name}
template<typename Type>
Values<Type> values_of();
template<>
inline Values<Halide::TailStrategy> values_of() {
    using Type = Halide::TailStrategy;
    return {"TailStrategy", {VALUE(Auto), VALUE(RoundUp), VALUE(GuardWithIf), VALUE(Predicate), VALUE(PredicateLoads),
                             VALUE(PredicateStores), VALUE(ShiftInwards), VALUE(ShiftInwardsAndBlend),
                             VALUE(RoundUpAndBlend)}};
}
template<>
inline Values<Halide::MemoryType> values_of() {
    using Type = Halide::MemoryType;
    return {"MemoryType", {VALUE(Auto), VALUE(Heap), VALUE(Stack), VALUE(Register), VALUE(GPUShared),
                           VALUE(GPUTexture), VALUE(LockedCache), VALUE(VTCM), VALUE(AMXTile)}};
}
template<>
inline Values<Halide::LoopAlignStrategy> values_of() {
    using Type = Halide::LoopAlignStrategy;
    return {"LoopAlignStrategy", {VALUE(AlignStart), VALUE(AlignEnd), VALUE(NoAlign), VALUE(Auto)}};
}
template<>
inline Values<Halide::Partition> values_of() {
    using Type = Halide::Partition;
    return {"Partition", {VALUE(Auto), VALUE(Never), VALUE(Always)}};
}
template<>
inline Values<Halide::PrefetchBoundStrategy> values_of() {
    using Type = Halide::PrefetchBoundStrategy;
    return {"PrefetchBoundStrategy", {VALUE(Clamp), VALUE(GuardWithIf), VALUE(NonFaulting)}};
}
template<>
inline Values<Halide::DeviceAPI> values_of() {
    using Type = Halide::DeviceAPI;
    return {"DeviceAPI", {VALUE(Host), VALUE(Default_GPU), VALUE(CUDA), VALUE(OpenCL), VALUE(Metal), VALUE(Hexagon),
                          VALUE(HexagonDma), VALUE(D3D12Compute), VALUE(Vulkan), VALUE(WebGPU)}};
}
#undef VALUE

// The Funcs, variables and parameters of a pipeline, by their identifiers in the schedule.
struct Names {
    std::map<std::string, Func> funcs;
    std::map<std::string, VarOrRVar> variables;
    std::map<std::string, Parameter> parameters;
    std::map<std::string, Expr> values;

    VarOrRVar variable(const std::string &identifier) const {
        if (identifier == Var::outermost().name()) return Var::outermost();
        return found(variables, identifier, "variable");
    }

    // A call of one operator, as in C++: a literal takes the other operand's type.
    Expr expression(const Json &json) const {
        if (json.kind == Json::Number) return Expr(static_cast<int32_t>(json.number));
        if (json.kind != Json::Object || json.names.size() != 1) refuse("a number or an expression is missing");
        const std::string &op = json.names[0];
        const std::vector<Json> &operands = json.items[0].items;
        if (operands.empty()) return found(values, op, "parameter");
        if (op == "!") return !expression(operands[0]);
        if (op == "select") {
            const Expr condition = expression(json.items[0][0]);
            return Halide::select(condition, expression(json.items[0][1]), expression(json.items[0][2]));
        }
        Expr a = expression(json.items[0][0]), b = expression(json.items[0][1]);
        if (operands[0].kind == Json::Number) a = Halide::Internal::make_const(b.type(), operands[0].number);
        if (operands[1].kind == Json::Number) b = Halide::Internal::make_const(a.type(), operands[1].number);
        static const std::map<std::string, Expr (*)(Expr, Expr)> operators = {
            {"+", [](Expr a, Expr b) { return a + b; }},   {"-", [](Expr a, Expr b) { return a - b; }},
            {"*", [](Expr a, Expr b) { return a * b; }},   {"/", [](Expr a, Expr b) { return a / b; }},
            {"%", [](Expr a, Expr b) { return a % b; }},   {"==", [](Expr a, Expr b) { return a == b; }},
            {"!=", [](Expr a, Expr b) { return a != b; }}, {"<", [](Expr a, Expr b) { return a < b; }},
            {"<=", [](Expr a, Expr b) { return a <= b; }}, {">", [](Expr a, Expr b) { return a > b; }},
            {">=", [](Expr a, Expr b) { return a >= b; }}, {"&&", [](Expr a, Expr b) { return a && b; }},
            {"||", [](Expr a, Expr b) { return a || b; }}, {"min", [](Expr a, Expr b) { return Halide::min(a, b); }},
            {"max", [](Expr a, Expr b) { return Halide::max(a, b); }},
        };
        return found(operators, op, "operator")(a, b);
    }
};

// What stands in a call's parentheses; the call itself is item 0.
class Arguments {
public:
    Arguments(const Json &call, const Names &names) : call_(call), names_(names) {}

    size_t count() const { return call_.items.size() - 1; }
    bool has(size_t i) const { return i < count(); }
    const Json &json(size_t i) const { return call_[i + 1]; }
    const std::string &text(size_t i) const { return json(i).text; }
    bool truth(size_t i, bool otherwise) const { return has(i) ? json(i).number != 0 : otherwise; }
    Expr number(size_t i) const { return names_.expression(json(i)); }
    VarOrRVar variable(size_t i) const { return names_.variable(text(i)); }
    Var pure(size_t i) const { return Var(variable(i).name()); }
    LoopLevel level() const { return LoopLevel(func(text(0)), variable(1)); }

    const Func &func(const std::string &identifier) const { return found(names_.funcs, identifier, "Func"); }

    template<typename T>
    T value(size_t i, T otherwise) const { return has(i) ? values_of<T>()(json(i)) : otherwise; }

    Halide::TailStrategy tail(size_t i) const { return value(i, Halide::TailStrategy::Auto); }

    std::vector<VarOrRVar> variables(const Json &listed, size_t first = 0) const {
        std::vector<VarOrRVar> result;
        for (size_t i = first; i < listed.items.size() && listed[i].text.find("::") == std::string::npos; i++) {
            result.push_back(names_.variable(listed[i].text));
        }
        return result;
    }

    std::vector<VarOrRVar> all_variables() const { return variables(call_, 1); }
    const Names &names() const { return names_; }

private:
    const Json &call_;
    const Names &names_;
};

// A bound that the pipeline has already, because it belongs to the algorithm, is not given twice.
inline void keep_new_bound(Func &func) {
    auto &bounds = func.function().schedule().bounds();
    const auto same = [](const Expr &a, const Expr &b) {
        return a.defined() == b.defined() && (!a.defined() || Halide::Internal::equal(a, b));
    };
    for (size_t i = 0; i + 1 < bounds.size(); i++) {
        const auto &known = bounds[i], &made = bounds.back();
        if (known.var == made.var && same(known.min, made.min) && same(known.extent, made.extent) &&
            same(known.modulus, made.modulus) && same(known.remainder, made.remainder)) {
            bounds.pop_back();
            return;
        }
    }
}

using OfFunc = void (*)(Func &, const Arguments &);
inline const std::map<std::string, OfFunc> calls_of_funcs = {
    {"compute_root", [](Func &f, const Arguments &) { f.compute_root(); }},
    {"compute_at", [](Func &f, const Arguments &a) { f.compute_at(a.level()); }},
    {"store_root", [](Func &f, const Arguments &) { f.store_root(); }},
    {"store_at", [](Func &f, const Arguments &a) { f.store_at(a.level()); }},
    {"hoist_storage_root", [](Func &f, const Arguments &) { f.hoist_storage_root(); }},
    {"hoist_storage", [](Func &f, const Arguments &a) { f.hoist_storage(a.level()); }},
    {"store_in", [](Func &f, const Arguments &a) { f.store_in(a.value(0, Halide::MemoryType::Auto)); }},
    {"async", [](Func &f, const Arguments &) { f.async(); }},
    {"ring_buffer", [](Func &f, const Arguments &a) { f.ring_buffer(a.number(0)); }},
    {"no_profiling", [](Func &f, const Arguments &) { f.no_profiling(); }},
    {"bound",
     [](Func &f, const Arguments &a) {
         f.bound(a.pure(0), a.number(1), a.number(2));
         keep_new_bound(f);
     }},
    {"bound_extent",
     [](Func &f, const Arguments &a) {
         f.bound_extent(a.pure(0), a.number(1));
         keep_new_bound(f);
     }},
    {"align_bounds",
     [](Func &f, const Arguments &a) {
         f.align_bounds(a.pure(0), a.number(1), a.number(2));
         keep_new_bound(f);
     }},
    {"align_extent",
     [](Func &f, const Arguments &a) {
         f.align_extent(a.pure(0), a.number(1));
         keep_new_bound(f);
     }},
    {"align_storage", [](Func &f, const Arguments &a) { f.align_storage(a.pure(0), a.number(1)); }},
    {"bound_storage", [](Func &f, const Arguments &a) { f.bound_storage(a.pure(0), a.number(1)); }},
    {"fold_storage", [](Func &f, const Arguments &a) { f.fold_storage(a.pure(0), a.number(1), a.truth(2, true)); }},
    {"reorder_storage",
     [](Func &f, const Arguments &a) {
         std::vector<Var> order;
         for (size_t i = 0; i < a.json(0).items.size(); i++) {
             order.emplace_back(a.names().variable(a.json(0)[i].text).name());
         }
         f.reorder_storage(order);
     }},
};

// One to three variables.
template<typename OnOne>
void each(const Arguments &a, OnOne on_one) {
    for (const VarOrRVar &variable : a.all_variables()) on_one(variable);
}

inline Halide::DeviceAPI device_after_variables(const Arguments &a) {
    return a.value(a.all_variables().size(), Halide::DeviceAPI::Default_GPU);
}

inline void prefetch(Stage &s, const Arguments &a) {
    const auto strategy = a.value(4, Halide::PrefetchBoundStrategy::GuardWithIf);
    const auto input = a.names().parameters.find(a.text(0));
    if (input != a.names().parameters.end()) {
        s.prefetch(input->second, a.variable(1), a.variable(2), a.number(3), strategy);
    } else {
        s.prefetch(a.func(a.text(0)), a.variable(1), a.variable(2), a.number(3), strategy);
    }
}

inline Stage stage_of(Func func, const Json &update) {
    if (!update) return func;
    if (update.number >= func.num_update_definitions()) {
        refuse("Func '" + func.name() + "' has no update " + std::to_string(update.number));
    }
    return func.update(static_cast<int>(update.number));
}

inline void compute_with(Stage &s, const Arguments &a) {
    const Stage other = stage_of(a.func(a.json(0)[0].text), a.json(0)[1]);
    if (!a.has(2)) {
        s.compute_with(other, a.variable(1));
        return;
    }
    std::vector<std::pair<VarOrRVar, Halide::LoopAlignStrategy>> alignments;
    for (const Json &pair : a.json(2).items) {
        alignments.emplace_back(a.names().variable(pair[0].text), values_of<Halide::LoopAlignStrategy>()(pair[1]));
    }
    s.compute_with(other, a.variable(1), alignments);
}

using OfStage = void (*)(Stage &, const Arguments &);
inline const std::map<std::string, OfStage> calls_of_stages = {
    {"split",
     [](Stage &s, const Arguments &a) {
         s.split(a.variable(0), a.variable(1), a.variable(2), a.number(3), a.tail(4));
     }},
    {"tile",
     [](Stage &s, const Arguments &a) {
         std::vector<Expr> factors;
         for (const Json &factor : a.json(3).items) factors.push_back(a.names().expression(factor));
         s.tile(a.variables(a.json(0)), a.variables(a.json(1)), a.variables(a.json(2)), factors, a.tail(4));
     }},
    {"fuse", [](Stage &s, const Arguments &a) { s.fuse(a.variable(0), a.variable(1), a.variable(2)); }},
    {"rename", [](Stage &s, const Arguments &a) { s.rename(a.variable(0), a.variable(1)); }},
    {"reorder", [](Stage &s, const Arguments &a) { s.reorder(a.variables(a.json(0))); }},
    {"vectorize", [](Stage &s, const Arguments &a) { s.vectorize(a.variable(0)); }},
    {"unroll", [](Stage &s, const Arguments &a) { s.unroll(a.variable(0)); }},
    {"serial", [](Stage &s, const Arguments &a) { s.serial(a.variable(0)); }},
    {"parallel",
     [](Stage &s, const Arguments &a) {
         if (a.has(1)) {
             s.parallel(a.variable(0), a.number(1), a.tail(2));
         } else {
             s.parallel(a.variable(0));
         }
     }},
    {"partition",
     [](Stage &s, const Arguments &a) { s.partition(a.variable(0), a.value(1, Halide::Partition::Auto)); }},
    {"gpu_blocks",
     [](Stage &s, const Arguments &a) {
         each(a, [&](const VarOrRVar &v) { s.gpu_blocks(v, device_after_variables(a)); });
     }},
    {"gpu_threads",
     [](Stage &s, const Arguments &a) {
         each(a, [&](const VarOrRVar &v) { s.gpu_threads(v, device_after_variables(a)); });
     }},
    {"gpu_lanes", [](Stage &s, const Arguments &a) { s.gpu_lanes(a.variable(0), device_after_variables(a)); }},
    {"gpu", [](Stage &s, const Arguments &a) { s.gpu(a.variable(0), a.variable(1)); }},
    {"gpu_single_thread", [](Stage &s, const Arguments &a) { s.gpu_single_thread(device_after_variables(a)); }},
    {"hexagon", [](Stage &s, const Arguments &a) { s.hexagon(a.variable(0)); }},
    {"prefetch", prefetch},
    {"compute_with", compute_with},
    {"atomic", [](Stage &s, const Arguments &a) { s.atomic(a.truth(0, false)); }},
    {"allow_race_conditions", [](Stage &s, const Arguments &) { s.allow_race_conditions(); }},
    {"specialize_fail", [](Stage &s, const Arguments &a) { s.specialize_fail(a.text(0)); }},
    {"unscheduled", [](Stage &s, const Arguments &) { s.unscheduled(); }},
};

}  // namespace halide_sdk

#endif  // HALIDE_SDK_SCHEDULE_CALLS
