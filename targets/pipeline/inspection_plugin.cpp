// Tells what a generator makes, without compiling it: its function's arguments with their sizes, and the Funcs that it
// schedules: without an autoscheduler, or although this one runs.
//
// Preloaded into the generator's process (LD_PRELOAD), it is an autoscheduler and takes the place of two functions of
// Halide: what compiles the pipeline, which gets the arguments, and what a generator calls last, which knows the names
// of the outputs. There it writes the report to the file that SDK_REPORT_PATH names, and ends the process.
//
// Parameter: `estimates` (see estimates.h; outputs by the names of their arguments).

#include "Halide.h" // first: it is parsed once for all plug-ins

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <unistd.h>

#include "argument_facts.h"
#include "estimates.h"
#include "halides_compiler.h"
#include "json.h"
#include "pipeline_parts.h"
#include "pipeline_reset.h"
#include "size_inference.h"

namespace {

using namespace halide_sdk_1;
using halide_sdk::list_of;
using halide_sdk::object;
using halide_sdk::quoted;

struct Inspected {
    Halide::Pipeline pipeline;
    std::vector<Halide::Argument> arguments;
    std::vector<std::string> scheduled;
    Estimates given;

    void inspect(const Halide::Pipeline &made) {
        pipeline = made;
        scheduled = reset_pipeline(made);
    }
};

Inspected &inspected() {
    static Inspected the_one;
    return the_one;
}

struct Inspect {
    void operator()(const Halide::Pipeline &pipeline, const Halide::Target &, const Halide::AutoschedulerParams &given,
                    Halide::AutoSchedulerResults *) {
        inspected().inspect(pipeline);
        const auto estimates = given.extra.find("estimates");
        if (estimates != given.extra.end()) inspected().given = parse_estimates(estimates->second);
    }
};

struct Register {
    Register() { Halide::Pipeline::add_autoscheduler("SdkInspect", Inspect()); }
} at_load;

// Whether the generator's estimates of a buffer do not count.
bool is_left_out(const std::string &name) {
    return inspected().given.left_out.count(name) > 0;
}

// An input is read through a Func that has its estimates, too.
void forget_what_is_left_out() {
    for (auto &entry : functions_of(inspected().pipeline)) {
        Halide::Internal::Function function = entry.second;
        if (!function.has_pure_definition() || function.outputs() != 1) continue;
        const auto *read = function.values().front().as<Halide::Internal::Call>();
        if (read == nullptr || read->call_type != Halide::Internal::Call::Image || !is_left_out(read->name)) continue;
        function.schedule().estimates().clear();
    }
}

std::optional<int64_t> constant(const Halide::Expr &expr) {
    return expr.defined() ? Halide::Internal::as_const_int(Halide::Internal::simplify(expr)) : std::nullopt;
}

// Set what is known of a dimension: by its user, by a constraint, by an estimate.
void set_known(ArgumentFacts &argument, size_t index, const Halide::Parameter &parameter, const Halide::Expr &min,
               const Halide::Expr &extent) {
    Dimension &dimension = argument.dimensions[index];
    const auto given = inspected().given.buffers.find(argument.name);
    if (given != inspected().given.buffers.end() && index < given->second.size()) {
        dimension.set(given->second[index].min, given->second[index].extent, Source::Given);
        return;
    }
    const bool has_parameter = parameter.defined() && parameter.is_buffer();
    const auto fixed = has_parameter ? constant(parameter.extent_constraint(static_cast<int>(index))) : std::nullopt;
    const auto least = has_parameter ? constant(parameter.min_constraint(static_cast<int>(index))) : std::nullopt;
    if (const auto estimated = constant(extent)) {
        dimension.set(constant(min).value_or(0), *estimated, Source::Generator);
    } else if (fixed) {
        dimension.set(least.value_or(0), *fixed, Source::Generator);
    }
}

std::string text_of_scalar(const Halide::Expr &expr) {
    std::ostringstream text;
    const Halide::Expr value = Halide::Internal::simplify(expr);
    if (const auto number = Halide::Internal::as_const_float(value)) {
        text.precision(9);
        text << *number;
    } else if (const auto whole = Halide::Internal::as_const_int(value)) {
        text << *whole;
    } else if (const auto natural = Halide::Internal::as_const_uint(value)) {
        text << *natural;
    }
    return text.str();
}

void set_scalar(ArgumentFacts &argument, const Halide::ArgumentEstimates &of_generator) {
    const auto given = inspected().given.scalars.find(argument.name);
    if (given != inspected().given.scalars.end()) {
        argument.value = given->second;
        argument.source = Source::Given;
        return;
    }
    for (const Halide::Expr &expr : {of_generator.scalar_estimate, of_generator.scalar_def}) {
        if (argument.source != Source::Missing || !expr.defined()) continue;
        argument.value = text_of_scalar(expr);
        argument.source = Source::Generator;
    }
    if (argument.source != Source::Missing) return;
    // One, if that is allowed.
    Halide::Expr proposal = Halide::Internal::make_one(argument.type.is_handle() ? Halide::UInt(64) : argument.type);
    if (of_generator.scalar_min.defined()) proposal = Halide::max(proposal, of_generator.scalar_min);
    if (of_generator.scalar_max.defined()) proposal = Halide::min(proposal, of_generator.scalar_max);
    argument.value = text_of_scalar(proposal);
    argument.source = Source::Default;
}

std::vector<ArgumentFacts> inputs() {
    std::map<std::string, Halide::Parameter> parameters;
    for (const auto &found : inputs_of(inspected().pipeline)) parameters[found.arg.name] = found.param;
    std::vector<ArgumentFacts> inputs;
    for (const Halide::Argument &argument : inspected().arguments) {
        ArgumentFacts facts{argument.name, argument.is_buffer() ? "input_buffer" : "input_scalar", argument.type, {}, "",
                            Source::Missing};
        const auto &estimates = argument.argument_estimates;
        if (!argument.is_buffer()) {
            set_scalar(facts, estimates);
        } else {
            facts.dimensions.resize(argument.dimensions);
            for (size_t i = 0; i < facts.dimensions.size(); i++) {
                const bool has_estimate = i < estimates.buffer_estimates.size() && !is_left_out(argument.name);
                set_known(facts, i, parameters[argument.name],
                          has_estimate ? estimates.buffer_estimates[i].min : Halide::Expr(),
                          has_estimate ? estimates.buffer_estimates[i].extent : Halide::Expr());
            }
        }
        inputs.push_back(facts);
    }
    return inputs;
}

std::vector<std::vector<ArgumentFacts>> outputs(const Halide::MetadataNameMap &names) {
    std::vector<std::vector<ArgumentFacts>> outputs;
    for (const Halide::Internal::Function &function : outputs_of(inspected().pipeline)) {
        std::vector<ArgumentFacts> elements;
        for (int t = 0; t < function.outputs(); t++) {
            const std::string name = function.name() + (function.outputs() > 1 ? "." + std::to_string(t) : "");
            const auto renamed = names.find(name);
            ArgumentFacts facts{renamed == names.end() ? name : renamed->second, "output_buffer",
                                function.output_types()[t], {}, "", Source::Missing};
            facts.dimensions.resize(function.dimensions());
            for (size_t i = 0; i < facts.dimensions.size(); i++) {
                Halide::Expr min, extent;
                for (const auto *bounds : {&function.schedule().bounds(), &function.schedule().estimates()}) {
                    if (bounds == &function.schedule().estimates() && is_left_out(facts.name)) continue;
                    for (const auto &bound : *bounds) {
                        if (bound.var == function.args()[i]) min = bound.min, extent = bound.extent;
                    }
                }
                set_known(facts, i, function.output_buffers()[t], min, extent);
            }
            elements.push_back(facts);
        }
        outputs.push_back(elements);
    }
    return outputs;
}

std::string report(const Halide::MetadataNameMap &names) {
    forget_what_is_left_out();
    std::vector<ArgumentFacts> all_inputs = inputs();
    std::vector<std::vector<ArgumentFacts>> all_outputs = outputs(names);
    SizeInference(inspected().pipeline, all_inputs, all_outputs).fill();
    const auto quote = [](const std::string &name) { return quoted(name); };
    const auto argument = [](const ArgumentFacts &one) { return json_of(one); };
    const auto elements = [&](const std::vector<ArgumentFacts> &of_tuple) { return list_of(of_tuple, argument); };
    return object({{"scheduled", list_of(inspected().scheduled, quote)},
                   {"inputs", list_of(all_inputs, argument)},
                   {"outputs", list_of(all_outputs, elements)}}) +
           "\n";
}

}  // namespace

Halide::Module Halide::Pipeline::compile_to_module(const std::vector<Argument> &arguments, const std::string &name,
                                                   const Target &target, LinkageType linkage) {
    if (is_run_by_generator(target)) return compile_by_halide(*this, arguments, name, target, linkage);
    inspected().arguments = arguments;
    if (!inspected().pipeline.defined()) inspected().inspect(*this);
    return Module(name, target);
}

void Halide::Module::set_auto_scheduler_results(const AutoSchedulerResults &) {
    const char *path = std::getenv("SDK_REPORT_PATH");
    std::ofstream out(path == nullptr ? "" : path);
    out << report(get_metadata_name_map());
    out.close();
    if (!out) std::fprintf(stderr, "SdkInspect: cannot write the report\n");
    _exit(out ? 0 : 1);
}
