// An autoscheduler that describes the pipeline that it gets, at its estimates, and ends the generator: what its stages
// loop over, and what they read. `shape.py` reads the description.
//
// Parameter: `describe_to`, the file.

#include "Halide.h" // first: it is parsed once for all plug-ins

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unistd.h>
#include <vector>

#include "arithmetic.h"
#include "bounds_inference.h"
#include "json.h"
#include "mixed_products.h"
#include "pipeline_parts.h"
#include "pipeline_reset.h"

namespace {

using namespace Halide::Internal;
using halide_sdk::list_of;
using halide_sdk::listed;
using halide_sdk::object;
using halide_sdk::quoted;
using halide_sdk::truth;
using halide_sdk_1::ArithmeticOf;
using halide_sdk_1::Values;
using halide_sdk_1::WrongVectors;
using Halide::Expr;

// Far enough that `x / 2` and `x * 3 / 4` move by a whole number.
constexpr int step = 192;

// How many points show how far apart rounded indices are.
constexpr int sampled_points = 16;

std::string number_or_null(const Expr &expr) {
    const auto value = expr.defined() ? as_const_int(expr) : std::nullopt;
    return value ? std::to_string(*value) : "null";
}

// The sizes and values that the pipeline's estimates say.
Values estimated_values(const Halide::Pipeline &pipeline) {
    Values values;
    const auto add = [&](const Halide::Parameter &parameter) {
        if (!parameter.is_buffer()) {
            if (parameter.estimate().defined()) values[parameter.name()] = parameter.estimate();
            return;
        }
        for (int i = 0; i < parameter.dimensions(); i++) {
            const std::string index = std::to_string(i);
            const Expr min = parameter.min_constraint_estimate(i), extent = parameter.extent_constraint_estimate(i);
            if (min.defined()) values[parameter.name() + ".min." + index] = min;
            if (extent.defined()) values[parameter.name() + ".extent." + index] = extent;
        }
    };
    for (const auto &input : halide_sdk_1::inputs_of(pipeline)) {
        if (input.param.defined()) add(input.param);
    }
    return values;
}

std::map<std::string, Box> estimated_outputs(const Halide::Pipeline &pipeline) {
    std::map<std::string, Box> outputs;
    for (const Function &output : halide_sdk_1::outputs_of(pipeline)) {
        Box box(output.dimensions());
        for (const auto &estimate : output.schedule().estimates()) {
            for (int i = 0; i < output.dimensions(); i++) {
                if (output.args()[i] != estimate.var || !estimate.min.defined()) continue;
                box[i] = Interval(estimate.min, simplify(estimate.min + estimate.extent - 1));
            }
        }
        outputs[output.name()] = box;
    }
    return outputs;
}

// What an index depends on.
class IndexParts : public IRGraphVisitor {
public:
    std::set<std::string> names;
    bool has_data = false;

    explicit IndexParts(const Expr &index) { index.accept(this); }

private:
    using IRGraphVisitor::visit;
    void visit(const Variable *op) override { names.insert(op->name); }
    void visit(const Call *op) override {
        has_data = has_data || op->call_type == Call::Halide || op->call_type == Call::Image;
        if (!has_data) IRGraphVisitor::visit(op);
    }
};

// What one stage reads of one Func or input.
struct Reads {
    bool is_input = false;
    std::vector<std::vector<Expr>> places;

    // A place that is read again, as of another element of a tuple, is no other one.
    void add(const std::vector<Expr> &place) {
        const auto is_same = [](const Expr &one, const Expr &other) { return graph_equal(one, other); };
        for (const auto &known : places) {
            if (std::equal(place.begin(), place.end(), known.begin(), known.end(), is_same)) return;
        }
        places.push_back(place);
    }

    // By dimension: how far a loop's step moves it, and how far apart the places are.
    std::string dimensions(const std::set<std::string> &loops) const {
        std::vector<std::string> found;
        for (size_t d = 0; d < places.front().size(); d++) {
            found.push_back(object({{"slopes", slopes(d, loops)}, {"width", width(d, loops)}}));
        }
        return listed(found);
    }

private:
    // How far `step` of each loop moves an index; nothing where that depends on more.
    static std::optional<std::map<std::string, int64_t>> moves(const Expr &index, const std::set<std::string> &loops) {
        const IndexParts used(index);
        if (used.has_data) return std::nullopt;
        std::map<std::string, int64_t> found;
        for (const std::string &name : used.names) {
            if (!loops.count(name)) continue;
            const Expr variable = Variable::make(Halide::Int(32), name);
            const Expr moved = simplify(substitute(name, variable + step, index) - index);
            const auto distance = as_const_int(moved);
            if (!distance) return std::nullopt;
            found[name] = *distance;
        }
        return found;
    }

    // {loop: steps of the dimension for `step` of the loop}; null where that depends on more.
    std::string slopes(size_t d, const std::set<std::string> &loops) const {
        const auto found = moves(places.front()[d], loops);
        if (!found) return "null";
        std::vector<std::pair<std::string, std::string>> described;
        for (const auto &[name, distance] : *found) described.emplace_back(name, std::to_string(distance));
        return object(described);
    }

    // Null where the places move apart.
    std::string width(size_t d, const std::set<std::string> &loops) const {
        int64_t least = 0, most = 0;
        if (IndexParts(places.front()[d]).has_data) return "null";
        const auto first = moves(places.front()[d], loops);
        for (const auto &place : places) {
            if (IndexParts(place[d]).has_data) return "null";
            const Expr distance = simplify(place[d] - places.front()[d]);
            if (const auto offset = as_const_int(distance)) {
                least = std::min(least, *offset);
                most = std::max(most, *offset);
                continue;
            }
            // Equal but for what is rounded, as `x / 2` and `(x + 1) / 2` are: a few points show how far apart.
            if (!first || moves(place[d], loops) != first) return "null";
            for (int at = 0; at < sampled_points; at++) {
                std::map<std::string, Expr> values;
                for (const auto &[name, _] : *first) values[name] = at;
                const auto offset = as_const_int(simplify(substitute(values, distance)));
                if (!offset) return "null";
                least = std::min(least, *offset);
                most = std::max(most, *offset);
            }
        }
        return std::to_string(most - least + 1);
    }
};

class ReadsOf : public IRGraphVisitor {
public:
    std::map<std::string, Reads> reads;
    // What chooses between values by its number, as that which tells channels apart.
    std::set<std::string> choosing;
    int operations = 0;
    bool has_floats = false;
    int narrowest_bytes = 8;

    void of(const Definition &definition) {
        // What a definition repeats is in lets: an index is then a name that says nothing.
        for (const Expr &value : definition.values()) {
            add(value.type());
            substitute_in_all_lets(value).accept(this);
        }
        for (const Expr &arg : definition.args()) substitute_in_all_lets(arg).accept(this);
    }

private:
    using IRGraphVisitor::visit;

    void add(const Halide::Type &type) {
        has_floats = has_floats || type.is_float();
        if (type.bits() >= 8) narrowest_bytes = std::min(narrowest_bytes, type.bytes());
    }

    void include(const Expr &expr) override {
        operations++;
        add(expr.type());
        IRGraphVisitor::include(expr);
    }

    void choose_by(const Expr &value) {
        if (const auto *variable = value.as<Variable>()) choosing.insert(variable->name);
    }

    void visit(const EQ *op) override {
        if (is_const(op->b)) choose_by(op->a);
        IRGraphVisitor::visit(op);
    }

    void visit(const Call *op) override {
        if (op->call_type == Call::Halide || op->call_type == Call::Image) {
            Reads &of_callee = reads[op->name];
            of_callee.is_input = op->call_type == Call::Image;
            of_callee.add(op->args);
        }
        if (op->is_intrinsic(Call::mux)) choose_by(op->args[0]);
        IRGraphVisitor::visit(op);
    }
};

std::string json_of_reads(const std::map<std::string, Reads> &reads, const std::set<std::string> &loops) {
    return list_of(reads, [&](const std::pair<const std::string, Reads> &one) {
        return object({{"name", quoted(one.first)},
                       {"is_input", truth(one.second.is_input)},
                       {"places", std::to_string(one.second.places.size())},
                       {"dimensions", one.second.dimensions(loops)}});
    });
}

const char *kind_of(const Dim &dim) {
    if (dim.dim_type == DimType::PureVar) return "pure";
    return dim.dim_type == DimType::PureRVar ? "free" : "ordered";
}

bool is_associative(const Function &function, const Definition &definition) {
    std::vector<Expr> args = definition.args(), values = definition.values();
    return prove_associativity(function.name(), args, values).associative();
}

// What a target's vectors must not, or must, be.
struct VectorRules {
    WrongVectors wrong;
    int vector_bytes = 0;

    explicit VectorRules(const Halide::Target &target) : wrong(target) {
        const bool is_hvx = target.arch == Halide::Target::Hexagon || target.has_feature(Halide::Target::HVX);
        if (is_hvx) vector_bytes = target.natural_vector_size(Halide::UInt(8));
    }

    // HVX widens whole vectors: Halide 21's code generator ends where half of one is widened (CodeGen_Hexagon.cpp,
    // `is_native_interleave`).
    int least_lanes(int narrowest_bytes) const { return std::max(1, vector_bytes / narrowest_bytes); }
};

std::string json_of_stage(const Function &function, const Definition &definition, bool is_update,
                          const std::map<std::string, Expr> &extents, const Values &values,
                          const VectorRules &rules) {
    std::map<std::string, Expr> of_loops = extents;
    std::set<std::string> constant;
    for (const ReductionVariable &rvar : definition.schedule().rvars()) {
        of_loops[rvar.var] = halide_sdk_1::known(rvar.extent, values);
        if (as_const_int(simplify(rvar.extent))) constant.insert(rvar.var);
    }
    std::set<std::string> loops;
    std::vector<std::string> described;
    for (const Dim &dim : definition.schedule().dims()) {
        if (dim.var == Halide::Var::outermost().name()) continue;
        loops.insert(dim.var);
        described.push_back(object({{"name", quoted(dim.var)},
                                    {"kind", quoted(kind_of(dim))},
                                    {"extent", number_or_null(of_loops[dim.var])},
                                    {"is_constant", truth(constant.count(dim.var) > 0)}}));
    }
    ReadsOf of_stage;
    of_stage.of(definition);
    const bool reads_itself = of_stage.reads.erase(function.name()) > 0;
    std::vector<std::string> cases;
    for (const std::string &loop : loops) {
        if (of_stage.choosing.count(loop)) cases.push_back(quoted(loop));
    }
    return object({{"loops", listed(described)},
                   {"reads", json_of_reads(of_stage.reads, loops)},
                   {"cases", listed(cases)},
                   {"operations", std::to_string(of_stage.operations)},
                   {"arithmetic", std::to_string(ArithmeticOf(definition).operations)},
                   {"has_floats", truth(of_stage.has_floats)},
                   {"is_wrong_in_vectors", truth(rules.wrong.are_in(definition, false))},
                   {"is_wrong_if_inlined", truth(rules.wrong.are_in(definition, true))},
                   {"least_lanes", std::to_string(rules.least_lanes(of_stage.narrowest_bytes))},
                   {"reads_itself", truth(reads_itself)},
                   {"is_associative", truth(is_update && is_associative(function, definition))}});
}

// An extern stage has no loops, and may read anything of what it is given.
std::string json_of_extern(const Function &function) {
    std::vector<std::string> reads;
    for (const Halide::ExternFuncArgument &argument : function.extern_arguments()) {
        if (!argument.is_func() && !argument.is_image_param() && !argument.is_buffer()) continue;
        std::string name;
        int dimensions = 0;
        if (argument.is_func()) {
            const Function read(argument.func);
            name = read.name(), dimensions = read.dimensions();
        } else if (argument.is_image_param()) {
            name = argument.image_param.name(), dimensions = argument.image_param.dimensions();
        } else {
            name = argument.buffer.name(), dimensions = argument.buffer.dimensions();
        }
        const std::vector<std::string> unknown(dimensions, object({{"slopes", "null"}, {"width", "null"}}));
        reads.push_back(object({{"name", quoted(name)},
                                {"is_input", truth(!argument.is_func())},
                                {"places", "1"},
                                {"dimensions", listed(unknown)}}));
    }
    bool has_floats = false;
    for (const Halide::Type &type : function.output_types()) has_floats = has_floats || type.is_float();
    return object({{"loops", listed({})},
                   {"reads", listed(reads)},
                   {"operations", "1"},
                   {"arithmetic", "0"},
                   {"has_floats", truth(has_floats)},
                   {"reads_itself", truth(false)},
                   {"is_associative", truth(false)}});
}

// The Funcs that extern stages compute or read: they have a place of their own.
std::set<std::string> externs_of(const std::map<std::string, Function> &functions) {
    std::set<std::string> names;
    for (const auto &one : functions) {
        if (!one.second.has_extern_definition()) continue;
        names.insert(one.first);
        for (const Halide::ExternFuncArgument &argument : one.second.extern_arguments()) {
            if (argument.is_func()) names.insert(Function(argument.func).name());
        }
    }
    return names;
}

std::string json_of_func(const Function &function, const Box &region, bool is_output, bool is_extern,
                         const Values &values, const VectorRules &rules) {
    std::map<std::string, Expr> extents;
    std::vector<std::string> sizes;
    for (int i = 0; i < function.dimensions(); i++) {
        const bool is_known = i < static_cast<int>(region.size()) && region[i].is_bounded();
        const Expr extent = is_known ? simplify(region[i].max - region[i].min + 1) : Expr();
        extents[function.args()[i]] = extent;
        sizes.push_back(number_or_null(extent));
    }
    std::vector<std::string> stages;
    if (function.has_extern_definition()) {
        stages.push_back(json_of_extern(function));
    } else if (function.has_pure_definition()) {
        stages.push_back(json_of_stage(function, function.definition(), false, extents, values, rules));
    }
    for (const Definition &update : function.updates()) {
        stages.push_back(json_of_stage(function, update, true, extents, values, rules));
    }
    int bytes = 0;
    for (const Halide::Type &type : function.output_types()) bytes += type.bytes();
    int narrowest = 8;
    for (const Halide::Type &type : function.output_types()) narrowest = std::min(narrowest, type.bytes());
    std::vector<std::string> bounded;
    for (const Bound &bound : function.schedule().bounds()) bounded.push_back(quoted(bound.var));
    return object({{"name", quoted(function.name())},
                   {"args", list_of(function.args(), [](const std::string &arg) { return quoted(arg); })},
                   {"extents", listed(sizes)},
                   {"is_output", truth(is_output)},
                   {"is_extern", truth(is_extern)},
                   {"value_bytes", std::to_string(bytes)},
                   {"narrowest_bytes", std::to_string(narrowest)},
                   {"bounded", listed(bounded)},
                   {"is_narrow", truth(rules.wrong.is_narrow(function.name()))},
                   {"stages", listed(stages)}});
}

std::string json_of_pipeline(const Halide::Pipeline &pipeline, const Halide::Target &target) {
    const halide_sdk_1::RegionsRequired required(pipeline);
    const Values values = estimated_values(pipeline);
    auto regions = required.of_all(estimated_outputs(pipeline), values);
    const std::set<std::string> externs = externs_of(required.functions());
    std::set<std::string> outputs;
    for (const Function &output : halide_sdk_1::outputs_of(pipeline)) outputs.insert(output.name());
    VectorRules rules(target);
    for (const std::string &name : required.order()) rules.wrong.add(required.functions().at(name));
    const auto func = [&](const std::string &name) {
        const bool is_output = outputs.count(name) > 0, is_extern = externs.count(name) > 0;
        return "\n" + json_of_func(required.functions().at(name), regions[name], is_output, is_extern, values, rules);
    };
    const bool has_few = (target.arch == Halide::Target::X86 && !target.has_feature(Halide::Target::AVX512)) ||
                         (target.arch == Halide::Target::ARM && target.bits == 32) || target.arch == Halide::Target::WebAssembly;
    return object({{"vector_bytes", std::to_string(target.natural_vector_size(Halide::UInt(8)))},
                   {"vector_registers", has_few ? "16" : "32"},
                   {"funcs", list_of(required.order(), func)}}) + "\n";
}

struct DescribePipeline {
    void operator()(const Halide::Pipeline &pipeline, const Halide::Target &target,
                    const Halide::AutoschedulerParams &parameters, Halide::AutoSchedulerResults *) {
        const auto path = parameters.extra.find("describe_to");
        FILE *file = path == parameters.extra.end() ? nullptr : std::fopen(path->second.c_str(), "w");
        if (file == nullptr) {
            std::fprintf(stderr, "The pipeline's description cannot be written.\n");
            _exit(1);
        }
        const bool written = std::fputs(json_of_pipeline(pipeline, target).c_str(), file) >= 0;
        _exit(std::fclose(file) == 0 && written ? 0 : 1);
    }
};

struct Register {
    Register() { Halide::Pipeline::add_autoscheduler("SdkDescribe", DescribePipeline()); }
} at_load;

}  // namespace
