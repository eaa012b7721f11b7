// Writes down a pipeline's schedule as Halide keeps it, and ends the generator before it compiles.
//
// Preloaded into a generator that runs without an autoscheduler, it reads the generator's own schedule: the function at
// the end then stands before libHalide's, and every generator calls it once its pipeline is scheduled, whether or not
// the schedule is under `using_autoscheduler()`. The file is the value of the variable SDK_SCHEDULE_PATH.
//
// As an autoscheduler it reads the pipeline that autoschedulers get. Parameter: `read_to`, the file.

#include "Halide.h" // first: it is parsed once for all plug-ins

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

#include "../pipeline/halides_compiler.h"
#include "../pipeline/json.h"
#include "../pipeline/pipeline_parts.h"
#include "../pipeline/pipeline_reset.h"

namespace {

using namespace Halide::Internal;
using halide_sdk::list_of;
using halide_sdk::listed;
using halide_sdk::object;
using halide_sdk::quoted;
using halide_sdk::truth;
using Halide::Expr;
using Halide::LoopLevel;
using Halide::Parameter;

constexpr const char *nothing = "null";

template<typename T, size_t Count>
std::string name_in(const char *const (&names)[Count], T value) {
    const size_t index = static_cast<size_t>(value);
    return index < Count ? quoted(names[index]) : nothing;
}

// In the order of Halide's enumerations.
const char *const loop_types[] = {"serial", "parallel",   "vectorize",   "unroll",
                                  "extern", "gpu_blocks", "gpu_threads", "gpu_lanes"};
const char *const device_apis[] = {"None", "Host", "Default_GPU", "CUDA", "OpenCL", "Metal", "Hexagon", "HexagonDma",
                                   "D3D12Compute", "Vulkan", "WebGPU"};
const char *const memory_types[] = {"Auto",       "Heap",        "Stack", "Register", "GPUShared",
                                    "GPUTexture", "LockedCache", "VTCM",  "AMXTile"};
const char *const tails[] = {"RoundUp", "GuardWithIf", "Predicate", "PredicateLoads", "PredicateStores", "ShiftInwards",
                             "ShiftInwardsAndBlend", "RoundUpAndBlend", "Auto"};
const char *const alignments[] = {"AlignStart", "AlignEnd", "NoAlign", "Auto"};
const char *const partitions[] = {"Auto", "Never", "Always"};
const char *const prefetch_strategies[] = {"Clamp", "GuardWithIf", "NonFaulting"};

// The operators of a schedule's expressions; anything else is shown as text, which cannot be applied again.
class ToJson : public IRGraphVisitor {
public:
    std::string of(const Expr &expr) {
        result_.clear();
        if (!expr.defined()) return nothing;
        expr.accept(this);
        if (!result_.empty()) return result_;
        std::ostringstream text;
        text << expr;
        return object({{"text", quoted(text.str())}});
    }

private:
    std::string result_;

    using IRGraphVisitor::visit;

    void include(const Expr &) override { result_.clear(); }

    void binary(const char *op, const Expr &a, const Expr &b) {
        const std::string left = ToJson().of(a), right = ToJson().of(b);
        result_ = object({{"operator", quoted(op)}, {"operands", listed({left, right})}});
    }

    void visit(const IntImm *op) override { result_ = std::to_string(op->value); }
    void visit(const UIntImm *op) override { result_ = std::to_string(op->value); }
    void visit(const Variable *op) override {
        if (!op->param.defined()) return;
        const std::string &name = op->param.name();
        const std::string field = op->name.size() > name.size() ? op->name.substr(name.size() + 1) : "value";
        result_ = object({{"parameter", quoted(name)}, {"field", quoted(field)}});
    }
    void visit(const Add *op) override { binary("+", op->a, op->b); }
    void visit(const Sub *op) override { binary("-", op->a, op->b); }
    void visit(const Mul *op) override { binary("*", op->a, op->b); }
    void visit(const Div *op) override { binary("/", op->a, op->b); }
    void visit(const Mod *op) override { binary("%", op->a, op->b); }
    void visit(const Min *op) override { binary("min", op->a, op->b); }
    void visit(const Max *op) override { binary("max", op->a, op->b); }
    void visit(const EQ *op) override { binary("==", op->a, op->b); }
    void visit(const NE *op) override { binary("!=", op->a, op->b); }
    void visit(const LT *op) override { binary("<", op->a, op->b); }
    void visit(const LE *op) override { binary("<=", op->a, op->b); }
    void visit(const GT *op) override { binary(">", op->a, op->b); }
    void visit(const GE *op) override { binary(">=", op->a, op->b); }
    void visit(const And *op) override { binary("&&", op->a, op->b); }
    void visit(const Or *op) override { binary("||", op->a, op->b); }
    void visit(const Not *op) override {
        const std::string of_what = ToJson().of(op->a);
        result_ = object({{"operator", quoted("!")}, {"operands", listed({of_what})}});
    }
    void visit(const Select *op) override {
        const std::string condition = ToJson().of(op->condition);
        const std::string yes = ToJson().of(op->true_value), no = ToJson().of(op->false_value);
        result_ = object({{"operator", quoted("select")}, {"operands", listed({condition, yes, no})}});
    }
};

std::string json_of(const Expr &expr) { return ToJson().of(expr); }

std::string json_of(LoopLevel level) {
    level.lock();
    if (level.is_inlined()) return nothing;
    if (level.is_root()) return object({{"root", truth(true)}});
    return object({{"func", quoted(level.func())},
                   {"variable", quoted(level.var_name())},
                   {"is_reduction", truth(level.is_rvar())},
                   {"stage", std::to_string(level.get_stage_index())}});
}

std::string json_of(const Split &split) {
    static const char *const kinds[] = {"split", "rename", "fuse"};
    return object({{"kind", name_in(kinds, split.split_type)},
                   {"old", quoted(split.old_var)},
                   {"outer", quoted(split.outer)},
                   {"inner", quoted(split.inner)},
                   {"factor", json_of(split.factor)},
                   {"exact", truth(split.exact)},
                   {"tail", name_in(tails, split.tail)}});
}

std::string json_of(const Dim &dim) {
    return object({{"name", quoted(dim.var)},
                   {"type", name_in(loop_types, dim.for_type)},
                   {"device", name_in(device_apis, dim.device_api)},
                   {"is_reduction", truth(dim.is_rvar())},
                   {"partition", name_in(partitions, dim.partition_policy)}});
}

std::string json_of(const PrefetchDirective &prefetch) {
    return object({{"source", quoted(prefetch.name)},
                   {"is_input", truth(prefetch.param.defined())},
                   {"at", quoted(prefetch.at)},
                   {"base", quoted(prefetch.from)},
                   {"offset", json_of(prefetch.offset)},
                   {"strategy", name_in(prefetch_strategies, prefetch.strategy)}});
}

// What tells of an rfactor: the Funcs that a definition calls, and the variables that it multiplies by numbers.
class Uses : public IRGraphVisitor {
public:
    explicit Uses(const Definition &definition) { definition.accept(this); }

    std::string calls() const { return list_of(calls_, [](const std::string &text) { return text; }); }
    std::string scaled() const { return list_of(scaled_, [](const std::string &text) { return text; }); }

private:
    std::set<std::string> calls_, scaled_;

    using IRGraphVisitor::visit;

    void visit(const Call *op) override {
        if (op->call_type == Call::Halide) calls_.insert(quoted(op->name));
        IRGraphVisitor::visit(op);
    }

    void visit(const Mul *op) override {
        const Variable *variable = op->a.as<Variable>();
        const auto factor = as_const_int(op->b);
        if (variable != nullptr && factor) {
            scaled_.insert(listed({quoted(variable->name), std::to_string(*factor)}));
        }
        IRGraphVisitor::visit(op);
    }
};

std::string json_of(const ReductionVariable &rvar) {
    return object({{"name", quoted(rvar.var)},
                   {"minimum", json_of(simplify(rvar.min))},
                   {"extent", json_of(simplify(rvar.extent))}});
}

std::string json_of(const Definition &definition, const std::vector<std::string> &args) {
    const StageSchedule &schedule = definition.schedule();
    // The loops before any scheduling: the reduction's, then those of the variables that stand alone on the left side.
    const Uses uses(definition);
    std::vector<std::string> pure;
    for (size_t i = 0; i < definition.args().size() && i < args.size(); i++) {
        const Variable *variable = definition.args()[i].as<Variable>();
        if (variable != nullptr && variable->name == args[i] && !variable->reduction_domain.defined()) {
            pure.push_back(quoted(args[i]));
        }
    }
    const auto align = [](const std::pair<const std::string, Halide::LoopAlignStrategy> &one) {
        return listed({quoted(one.first), name_in(alignments, one.second)});
    };
    const auto prefetch = [](const PrefetchDirective &one) { return json_of(one); };
    const auto specialization = [&](const Specialization &one) {
        return object({{"condition", json_of(one.condition)},
                       {"failure", quoted(one.failure_message)},
                       {"stage", json_of(one.definition, args)}});
    };
    return object({{"reductions", list_of(schedule.rvars(), [](const ReductionVariable &one) { return json_of(one); })},
                   {"pure", listed(pure)},
                   {"calls", uses.calls()},
                   {"scaled", uses.scaled()},
                   {"splits", list_of(schedule.splits(), [](const Split &one) { return json_of(one); })},
                   {"dims", list_of(schedule.dims(), [](const Dim &one) { return json_of(one); })},
                   {"prefetches", list_of(schedule.prefetches(), prefetch)},
                   {"with", json_of(schedule.fuse_level().level)},
                   {"alignments", list_of(schedule.fuse_level().align, align)},
                   {"is_touched", truth(schedule.touched())},
                   {"allows_races", truth(schedule.allow_race_conditions())},
                   {"is_atomic", truth(schedule.atomic())},
                   {"overrides_test", truth(schedule.override_atomic_associativity_test())},
                   {"specializations", list_of(definition.specializations(), specialization)}});
}

std::string json_of(const Function &function) {
    const FuncSchedule &schedule = function.schedule();
    const auto quote = [](const std::string &name) { return quoted(name); };
    const auto storage = [](const StorageDim &dim) {
        return object({{"name", quoted(dim.var)},
                       {"alignment", json_of(dim.alignment)},
                       {"bound", json_of(dim.bound)},
                       {"fold", json_of(dim.fold_factor)},
                       {"fold_forward", truth(dim.fold_forward)}});
    };
    const auto bound = [](const Bound &one) {
        return object({{"name", quoted(one.var)},
                       {"minimum", json_of(one.min)},
                       {"extent", json_of(one.extent)},
                       {"modulus", json_of(one.modulus)},
                       {"remainder", json_of(one.remainder)}});
    };
    const auto wrapper = [](const std::pair<const std::string, FunctionPtr> &one) {
        return listed({quoted(one.first), quoted(Function(one.second).name())});
    };
    std::vector<std::string> stages;
    if (function.has_pure_definition() || function.has_extern_definition()) {
        stages.push_back(json_of(function.definition(), function.args()));
    }
    for (const Definition &update : function.updates()) stages.push_back(json_of(update, function.args()));
    const bool is_traced =
        function.is_tracing_loads() || function.is_tracing_stores() || function.is_tracing_realizations();
    return object({{"name", quoted(function.name())},
                   {"args", list_of(function.args(), quote)},
                   {"is_extern", truth(function.has_extern_definition())},
                   {"compute", json_of(schedule.compute_level())},
                   {"store", json_of(schedule.store_level())},
                   {"hoist", json_of(schedule.hoist_storage_level())},
                   {"memory", name_in(memory_types, schedule.memory_type())},
                   {"is_async", truth(schedule.async())},
                   {"ring_buffer", json_of(schedule.ring_buffer())},
                   {"is_memoized", truth(schedule.memoized())},
                   {"is_traced", truth(is_traced)},
                   {"is_not_profiled", truth(function.should_not_profile())},
                   {"storage", list_of(schedule.storage_dims(), storage)},
                   {"bounds", list_of(schedule.bounds(), bound)},
                   {"wrappers", list_of(schedule.wrappers(), wrapper)},
                   {"stages", listed(stages)}});
}

// The pipeline's Funcs, producers first, then the wrappers and clones and what only they call.
std::vector<Function> functions_with_wrappers(const Halide::Pipeline &pipeline) {
    std::map<std::string, Function> known = halide_sdk_1::functions_of(pipeline);
    std::vector<Function> result;
    for (const std::string &name : halide_sdk_1::order_of(pipeline, known)) result.push_back(known.at(name));
    for (size_t i = 0; i < result.size(); i++) {
        for (const auto &wrapper : result[i].wrappers()) {
            for (const auto &called : find_transitive_calls(Function(wrapper.second))) {
                if (known.insert(called).second) result.push_back(called.second);
            }
        }
    }
    return result;
}

// What a generator demands of a buffer, as text: "stride.1".
void add_constraints(const Parameter &parameter, std::vector<std::string> *found) {
    if (!parameter.defined() || !parameter.is_buffer()) return;
    const auto add = [&](const std::string &field, const Expr &value) {
        if (!value.defined()) return;
        std::ostringstream text;
        text << value;
        found->push_back(listed({quoted(parameter.name() + "." + field), quoted(text.str())}));
    };
    for (int i = 0; i < parameter.dimensions(); i++) {
        const std::string dimension = "." + std::to_string(i);
        add("min" + dimension, parameter.min_constraint(i));
        add("extent" + dimension, parameter.extent_constraint(i));
        add("stride" + dimension, parameter.stride_constraint(i));
    }
    add("host_alignment", parameter.host_alignment());
}

std::string constraints_of(const Halide::Pipeline &pipeline) {
    std::vector<std::string> found;
    for (const Function &output : halide_sdk_1::outputs_of(pipeline)) {
        for (const Parameter &buffer : output.output_buffers()) add_constraints(buffer, &found);
    }
    for (const auto &input : halide_sdk_1::inputs_of(pipeline)) add_constraints(input.param, &found);
    return listed(found);
}

std::string json_of(const Halide::Pipeline &pipeline, const std::string &name) {
    const auto name_of = [](const Halide::Func &one) { return quoted(one.name()); };
    const auto line_of = [](const Function &one) { return "\n" + json_of(one); };
    return object({{"function_name", quoted(name)},
                   {"outputs", list_of(pipeline.outputs(), name_of)},
                   {"constraints", constraints_of(pipeline)},
                   {"funcs", list_of(functions_with_wrappers(pipeline), line_of)}}) +
           "\n";
}

[[noreturn]] void write_and_end(const Halide::Pipeline &pipeline, const std::string &name, const char *path) {
    FILE *file = path == nullptr ? nullptr : std::fopen(path, "w");
    if (file == nullptr) {
        std::fprintf(stderr, "The schedule cannot be written.\n");
        _exit(1);
    }
    const bool written = std::fputs(json_of(pipeline, name).c_str(), file) >= 0;
    _exit(std::fclose(file) == 0 && written ? 0 : 1);
}

struct ReadSchedule {
    void operator()(const Halide::Pipeline &pipeline, const Halide::Target &,
                    const Halide::AutoschedulerParams &parameters, Halide::AutoSchedulerResults *) {
        const auto path = parameters.extra.find("read_to");
        write_and_end(pipeline, "pipeline", path == parameters.extra.end() ? nullptr : path->second.c_str());
    }
};

struct Register {
    Register() { Halide::Pipeline::add_autoscheduler("SdkReadSchedule", ReadSchedule()); }
} at_load;

}  // namespace

Halide::Module Halide::Pipeline::compile_to_module(const std::vector<Halide::Argument> &arguments,
                                                   const std::string &name, const Halide::Target &target,
                                                   Halide::LinkageType linkage) {
    if (halide_sdk_1::is_run_by_generator(target)) {
        return halide_sdk_1::compile_by_halide(*this, arguments, name, target, linkage);
    }
    write_and_end(*this, name, std::getenv("SDK_SCHEDULE_PATH"));
}
