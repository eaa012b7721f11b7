#ifndef HALIDE_SDK_PIPELINE_RESET_1
#define HALIDE_SDK_PIPELINE_RESET_1

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "Halide.h"

namespace halide_sdk_1 {

// Every Func of the pipeline by its name, without the wrappers of `in()` and the clones of `clone_in()`.
inline std::map<std::string, Halide::Internal::Function> functions_of(const Halide::Pipeline &pipeline) {
    std::map<std::string, Halide::Internal::Function> functions;
    for (const Halide::Func &output : pipeline.outputs()) {
        const auto called = Halide::Internal::find_transitive_calls(output.function());
        functions.insert(called.begin(), called.end());
        functions.emplace(output.name(), output.function());
    }
    return functions;
}

inline std::string text_of_level(Halide::LoopLevel level) {
    return level.lock().to_string() + "\n";
}

// A definition's loops, as far as scheduling calls can change them.
inline std::string text_of_stage(const Halide::Internal::Definition &definition) {
    const Halide::Internal::StageSchedule &schedule = definition.schedule();
    std::ostringstream text;
    for (const auto &dim : schedule.dims()) {
        text << dim.var << " " << dim.for_type << " " << static_cast<int>(dim.device_api) << " "
             << static_cast<int>(dim.partition_policy) << "\n";
    }
    text << schedule.splits().size() << " " << schedule.prefetches().size() << " " << schedule.atomic() << " "
         << schedule.allow_race_conditions() << " " << definition.specializations().size() << " "
         << text_of_level(schedule.fuse_level().level);
    return text.str();
}

// A Func's schedule, as far as it is reset.
inline std::string text_of_schedule(const Halide::Internal::Function &function) {
    const Halide::Internal::FuncSchedule &schedule = function.schedule();
    std::ostringstream text;
    text << text_of_level(schedule.compute_level()) << text_of_level(schedule.store_level())
         << text_of_level(schedule.hoist_storage_level()) << schedule.memory_type() << " " << schedule.memoized() << " "
         << schedule.async() << " " << schedule.ring_buffer().defined() << " " << schedule.wrappers().size() << "\n";
    for (const auto &dim : schedule.storage_dims()) {
        text << dim.var << " " << dim.alignment.defined() << dim.bound.defined() << dim.fold_factor.defined() << "\n";
    }
    text << schedule.bounds().size() << "\n" << text_of_stage(function.definition());
    for (const auto &update : function.updates()) {
        text << text_of_stage(update);
    }
    return text.str();
}

// The loops of an update as Function::define_update makes them (Halide, src/Function.cpp): the reduction's variables in
// order, then the variables that stand plainly on the left. Whether a reduction's variable is free to be reordered
// does not survive splits and fusions, so it is asked for again.
inline std::vector<Halide::Internal::Dim> original_loops(const Halide::Internal::Function &function,
                                                         const Halide::Internal::Definition &definition,
                                                         bool is_update) {
    using namespace Halide::Internal;
    const ForType pure_loop =
        !is_update && function.has_extern_definition() ? ForType::Extern : ForType::Serial;
    std::vector<Dim> dims;
    const auto add = [&](const std::string &name, ForType loop, DimType kind) {
        dims.push_back({name, loop, Halide::DeviceAPI::None, kind, Halide::Partition::Auto});
    };
    for (const ReductionVariable &rvar : definition.schedule().rvars()) {
        const bool is_pure = can_parallelize_rvar(rvar.var, function.name(), definition);
        add(rvar.var, ForType::Serial, is_pure ? DimType::PureRVar : DimType::ImpureRVar);
    }
    for (size_t i = 0; i < function.args().size(); i++) {
        const Variable *variable = definition.args()[i].as<Variable>();
        const bool is_plain = variable != nullptr && !variable->param.defined() && !variable->image.defined() &&
                              !variable->reduction_domain.defined() && variable->name == function.args()[i];
        if (is_plain) add(function.args()[i], pure_loop, DimType::PureVar);
    }
    add(Halide::Var::outermost().name(), ForType::Serial, DimType::PureVar);
    return dims;
}

inline void reset_stage(const Halide::Internal::Function &function, Halide::Internal::Definition &definition,
                        bool is_update) {
    Halide::Internal::StageSchedule &schedule = definition.schedule();
    schedule.splits().clear();
    schedule.prefetches().clear();
    schedule.fused_pairs().clear();
    schedule.fuse_level() = Halide::FuseLoopLevel();
    schedule.atomic() = false;
    schedule.override_atomic_associativity_test() = false;
    schedule.allow_race_conditions() = false;
    schedule.touched() = false;
    definition.specializations().clear();
    schedule.dims() = original_loops(function, definition, is_update);
}

// Bounds that are numbers; autoschedulers take no others.
inline std::vector<Halide::Internal::Bound> constant_bounds(const std::vector<Halide::Internal::Bound> &bounds) {
    using Halide::Internal::as_const_int;
    std::vector<Halide::Internal::Bound> kept;
    for (const auto &bound : bounds) {
        const bool is_constant = bound.min.defined() && as_const_int(bound.min) && bound.extent.defined() &&
                                 as_const_int(bound.extent) && !bound.modulus.defined();
        if (is_constant) kept.push_back(bound);
    }
    return kept;
}

// Make the Func's schedule what it was when the Func was defined. The constant bounds of an output stay: they belong to
// the contract with its callers, as do constraints on buffers.
inline void reset_func(Halide::Internal::Function function, bool is_output) {
    Halide::Internal::FuncSchedule &schedule = function.schedule();
    schedule.compute_level() = Halide::LoopLevel::inlined();
    schedule.store_level() = Halide::LoopLevel::inlined();
    schedule.hoist_storage_level() = Halide::LoopLevel::inlined();
    schedule.memory_type() = Halide::MemoryType::Auto;
    schedule.memoized() = false;
    schedule.memoize_eviction_key() = Halide::Expr();
    schedule.async() = false;
    schedule.ring_buffer() = Halide::Expr();
    schedule.wrappers().clear();
    const std::vector<Halide::Internal::Bound> kept = constant_bounds(schedule.bounds());
    schedule.bounds() = is_output ? kept : std::vector<Halide::Internal::Bound>();
    schedule.storage_dims().clear();
    for (const std::string &arg : function.args()) {
        Halide::Internal::StorageDim dim{};
        dim.var = arg;
        schedule.storage_dims().push_back(dim);
    }
    reset_stage(function, function.definition(), false);
    for (size_t i = 0; i < function.updates().size(); i++) {
        reset_stage(function, function.update(static_cast<int>(i)), true);
    }
}

// Take the schedule off a pipeline; returns the names of the Funcs that had one. What `rfactor` has split stays split.
inline std::vector<std::string> reset_pipeline(const Halide::Pipeline &pipeline) {
    std::vector<std::string> scheduled;
    const auto functions = functions_of(pipeline);
    for (const auto &entry : functions) {
        bool is_output = false;
        for (const Halide::Func &output : pipeline.outputs()) {
            is_output = is_output || output.function().same_as(entry.second);
        }
        const std::string before = text_of_schedule(entry.second);
        reset_func(entry.second, is_output);
        if (text_of_schedule(entry.second) != before) scheduled.push_back(entry.first);
    }
    return scheduled;
}

}  // namespace halide_sdk_1

#endif  // HALIDE_SDK_PIPELINE_RESET_1
