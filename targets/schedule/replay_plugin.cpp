// An autoscheduler that applies a schedule that is data, so that no C++ is compiled for it.
//
// Parameter: `schedule_path`, a file as autotune_loop/schedule/as_json.py writes it. What Halide refuses ends the
// generator with Halide's own sentence.

#include "Halide.h" // first: it is parsed once for all plug-ins

#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "../pipeline/json.h"
#include "../pipeline/pipeline_parts.h"
#include "../pipeline/pipeline_reset.h"
#include "schedule_calls.h"

namespace {

using namespace halide_sdk;
using Halide::RVar;

// A pipeline to which a schedule is applied.
class Replay {
public:
    Replay(const Halide::Pipeline &pipeline, const Json &schedule)
        : schedule_(schedule), pipeline_(pipeline), functions_(halide_sdk_1::functions_of(pipeline)),
          order_(halide_sdk_1::order_of(pipeline, functions_)) {}

    void apply() {
        make_funcs();
        find_parameters();
        find_variables();
        for (const Json &stage : schedule_["stages"].items) apply(stage);
    }

private:
    const Json &schedule_;
    const Halide::Pipeline &pipeline_;
    std::map<std::string, Halide::Internal::Function> functions_;
    std::vector<std::string> order_;
    Names names_;

    // Those that exist, and the wrappers of those that are known by now, in the schedule's order.
    void make_funcs() {
        for (const Json &json : schedule_["funcs"].items) {
            const std::string &identifier = json["id"].text;
            if (names_.funcs.count(identifier) || json["rfactor"]) continue;
            if (json["index"]) {
                const size_t index = json["index"].number;
                if (index >= order_.size()) refuse("the pipeline has no Func " + std::to_string(index));
                names_.funcs.emplace(identifier, Func(functions_.at(order_[index])));
            } else if (json["name"]) {
                names_.funcs.emplace(identifier, Func(found(functions_, json["name"].text, "Func")));
            } else {
                make_wrapper(json);
            }
        }
    }

    void make_wrapper(const Json &json) {
        const bool is_clone = static_cast<bool>(json["clone_of"]);
        const auto of = names_.funcs.find(json[is_clone ? "clone_of" : "wrapper_of"].text);
        if (of == names_.funcs.end()) return;
        std::vector<Func> consumers;
        for (const Json &consumer : json["for"].items) {
            const auto known = names_.funcs.find(consumer.text);
            if (known == names_.funcs.end()) return;
            consumers.push_back(known->second);
        }
        Func func = of->second;
        names_.funcs.emplace(json["id"].text, is_clone               ? consumers.size() == 1 ?
                                                             func.clone_in(consumers[0]) :
                                                             func.clone_in(consumers) :
                                              consumers.empty()      ? func.in() :
                                              consumers.size() == 1 ? func.in(consumers[0]) :
                                                                      func.in(consumers));
    }

    void find_parameters() {
        if (schedule_["parameters"].items.empty()) return;
        std::map<std::string, Parameter> known;
        for (const auto &input : halide_sdk_1::inputs_of(pipeline_)) {
            if (input.param.defined()) known.emplace(input.param.name(), input.param);
        }
        for (const auto &output : halide_sdk_1::outputs_of(pipeline_)) {
            for (const Parameter &buffer : output.output_buffers()) known[buffer.name()] = buffer;
        }
        for (const Json &json : schedule_["parameters"].items) {
            const std::string &identifier = json["id"].text, &name = json["name"].text, &field = json["field"].text;
            const Parameter &parameter = found(known, name, "input or output");
            const bool is_scalar = field == "value";
            if (field == "buffer") {
                names_.parameters.emplace(identifier, parameter);
            } else {
                names_.values.emplace(identifier, Halide::Internal::Variable::make(
                                                      is_scalar ? parameter.type() : Halide::Int(32),
                                                      is_scalar ? name : name + "." + field, parameter));
            }
        }
    }

    void find_variables() {
        for (const Json &json : schedule_["variables"].items) {
            const std::string name = json["name"] ? json["name"].text : name_at(json);
            names_.variables.emplace(json["id"].text, VarOrRVar(name, json["reduction"].number != 0));
        }
    }

    // A variable of a stage as it is before any scheduling.
    std::string name_at(const Json &json) {
        Func func = found(names_.funcs, json["func"].text, "Func");
        const size_t position = json["position"].number;
        std::vector<std::string> known;
        if (json["list"].text == "args") {
            for (const Var &arg : func.args()) known.push_back(arg.name());
        } else {
            const auto &schedule = stage_of(func, json["update"]).get_schedule();
            if (json["list"].text == "rvars") {
                for (const auto &rvar : schedule.rvars()) known.push_back(rvar.var);
            } else {
                for (const auto &dim : schedule.dims()) known.push_back(dim.var);
            }
        }
        if (position >= known.size()) refuse("Func '" + func.name() + "' has no variable " + std::to_string(position));
        return known[position];
    }

    void apply(const Json &json) {
        Func func = found(names_.funcs, json["func"].text, "Func");
        std::optional<Stage> stage;
        // An extern stage has no loops, and Halide makes no Stage of it.
        if (!func.is_extern()) {
            stage = stage_of(func, json["update"]);
            for (const Json &condition : json["if"].items) stage = stage->specialize(names_.expression(condition));
        }
        for (const Json &call : json["do"].items) {
            const std::string &method = call[0].text;
            const Arguments arguments(call, names_);
            const auto of_func = calls_of_funcs.find(method);
            if (of_func != calls_of_funcs.end()) {
                of_func->second(func, arguments);
            } else if (!stage) {
                refuse("Func '" + func.name() + "' is an extern stage, which has no loops for " + method);
            } else if (method == "rfactor") {
                factor(*stage, arguments);
            } else {
                found(calls_of_stages, method, "call")(*stage, arguments);
            }
        }
    }

    void factor(Stage &stage, const Arguments &arguments) {
        std::vector<std::pair<RVar, Var>> preserved;
        for (const Json &pair : arguments.json(0).items) {
            const std::string old_name = names_.variable(pair[0].text).name();
            preserved.emplace_back(RVar(old_name), Var(names_.variable(pair[1].text).name()));
        }
        names_.funcs.emplace(arguments.text(1), stage.rfactor(preserved));
        make_funcs();
    }
};

struct ReplaySchedule {
    void operator()(const Halide::Pipeline &pipeline, const Halide::Target &target,
                    const Halide::AutoschedulerParams &parameters, Halide::AutoSchedulerResults *results) {
        const auto path = parameters.extra.find("schedule_path");
        std::ifstream file(path == parameters.extra.end() ? "" : path->second);
        std::stringstream text;
        text << file.rdbuf();
        if (!file) refuse("its file cannot be read");
        Json schedule;
        const std::string content = text.str();
        try {
            schedule = JsonReader(content).read();
        } catch (const std::runtime_error &error) {
            refuse(error.what());
        }
        Replay(pipeline, schedule).apply();
        results->target = target;
        results->autoscheduler_params = parameters;
    }
};

struct Register {
    Register() { Halide::Pipeline::add_autoscheduler("SdkReplay", ReplaySchedule()); }
} at_load;

}  // namespace
