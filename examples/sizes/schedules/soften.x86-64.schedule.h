#ifndef soften_x86_64_SCHEDULE_H
#define soften_x86_64_SCHEDULE_H

// MACHINE GENERATED -- DO NOT EDIT
// generator     soften, parameters: none
// algorithm     66577e400f382729
// target        x86-64: x86-64-linux-avx-avx2-f16c-fma-sse41
// made with     Halide 21.0.0, Adams2019, SDK 0.1.0
// device        the machine that tuned it, 2 threads, 4e500cb3534a453a
// time          0.05348 ms +- 0.00086, play-off median of 8, geometric mean of 2 sizes; processes took 0.0509 to 0.06773 ms, wall time
// sizes         0.003243 ms at input=96x64 output=96x64; 0.8805 ms at input=1920x1080 output=1920x1080
// default       0.1273 ms +- 0.014, in turns with it
// play-off      faster: 1.479 times as fast as your own schedule (95 % interval 1.081 to 1.526)
// samples       223 timed
// weights       6320e6982cdce58f5de4211ab7d7d58ebee25ba9109fcb8320eee4de2264b3b3
// date          2026-11-23

#include "Halide.h"

// Whether a pipeline is the one that a schedule was made for. Copied into every header that is shipped.
#ifndef HALIDE_SDK_PIPELINE_CHECK_1
#define HALIDE_SDK_PIPELINE_CHECK_1

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

// Defined by those who want a changed definition to stop the build.
#ifdef HALIDE_SDK_STRICT
#define HALIDE_SDK_IS_STRICT true
#else
#define HALIDE_SDK_IS_STRICT false
#endif

namespace halide_sdk_1 {

// A Func of a pipeline. A hash of 0 is not compared.
struct FuncRow {
    std::string name;
    uint64_t definition;
    uint64_t domains;
};

// Names without the numbers by which Halide tells apart what has one name in one process.
class NormalNames {
public:
    std::string in(const std::string &text) {
        std::string result;
        for (size_t i = 0; i < text.size();) {
            size_t end = i + 1;
            if (is_letter(text[i])) {
                while (end < text.size() && (is_letter(text[end]) || is_digit(text[end]) || text[end] == '$')) end++;
                result += name(text.substr(i, end - i));
            } else {
                // A number is no name, nor is what is glued to it.
                while (is_digit(text[i]) && end < text.size() && (is_letter(text[end]) || is_digit(text[end]))) end++;
                result += text.substr(i, end - i);
            }
            i = end;
        }
        return result;
    }

    // "blur$1" is "blur", "r4$x" is "r#0$x", "f12" is "f#1".
    std::string name(const std::string &found) {
        std::istringstream parts(found);
        std::string part, result;
        for (bool first = true; std::getline(parts, part, '$'); first = false) {
            if (first) {
                result = is_numbered(part) ? numbered(part) : is_lambda(part) ? "lambda" : part;
            } else if (part.find_first_not_of("0123456789") != std::string::npos) {
                result += "$" + part;
            }
        }
        return result;
    }

private:
    std::map<std::string, std::string> numbers_;

    static bool is_digit(char c) { return c >= '0' && c <= '9'; }
    static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

    // What nobody has named: Halide makes a letter and a number of it.
    static bool is_numbered(const std::string &part) {
        return part.size() > 1 && part[0] >= 'a' && part[0] <= 'z' &&
               part.find_first_not_of("0123456789", 1) == std::string::npos;
    }

    static bool is_lambda(const std::string &part) {
        return part.compare(0, 7, "lambda_") == 0 && part.find_first_not_of("0123456789", 7) == std::string::npos;
    }

    std::string numbered(const std::string &part) {
        const std::string made = part.substr(0, 1) + "#" + std::to_string(numbers_.size());
        return numbers_.emplace(part, made).first->second;
    }
};

// FNV-1a, never 0.
inline uint64_t hash_of(const std::string &text) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char c : text) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    }
    return hash ? hash : 1;
}

template<typename T>
std::string text_of(const T &value) {
    std::ostringstream text;
    text << value << "\n";
    return text.str();
}

inline std::string text_of(const Halide::Tuple &values) {
    std::string text;
    for (size_t i = 0; i < values.size(); i++) {
        text += text_of(values[i]);
    }
    return text;
}

inline std::string definition_text(const Halide::Func &func) {
    if (!func.defined() || func.is_extern()) return "extern\n";
    std::string text;
    for (const Halide::Var &arg : func.args()) {
        text += arg.name() + "\n";
    }
    text += "=\n" + text_of(func.values());
    for (int i = 0; i < func.num_update_definitions(); i++) {
        text += "update\n";
        for (const Halide::Expr &arg : func.update_args(i)) {
            text += text_of(arg);
        }
        text += "=\n" + text_of(func.update_values(i));
    }
    return text;
}

// What the loops of reductions run over; Halide's Python does not tell it.
inline std::string domains_text(Halide::Func func) {
    std::string text;
    for (int i = 0; i < func.num_update_definitions(); i++) {
        for (const auto &rvar : func.update(i).get_schedule().rvars()) {
            text += rvar.var + "\n" + text_of(rvar.min) + text_of(rvar.extent);
        }
        text += text_of(func.function().update(i).predicate());
    }
    return text;
}

inline std::vector<Halide::Func> all_funcs(Halide::Pipeline pipeline) {
    std::map<std::string, Halide::Internal::Function> found;
    for (const Halide::Func &output : pipeline.outputs()) {
        for (const auto &entry : Halide::Internal::find_transitive_calls(output.function())) {
            found.insert(entry);
        }
        found.emplace(output.name(), output.function());
    }
    std::vector<Halide::Func> funcs;
    for (size_t i = 0; i < found.size(); i++) {
        funcs.push_back(pipeline.get_func(i));
    }
    return funcs;
}

// Of nameless Funcs only the letter that Halide gives them.
inline std::string name_of(const Halide::Func &func) {
    const std::string name = NormalNames().name(func.name());
    return name.substr(0, name.find('#'));
}

inline FuncRow row_of(const Halide::Func &func, bool with_definition) {
    NormalNames names, names_of_domains;
    if (!with_definition) return {name_of(func), 0, 0};
    return {name_of(func), hash_of(names.in(definition_text(func))), hash_of(names_of_domains.in(domains_text(func)))};
}

inline std::string count_of(size_t funcs) {
    return std::to_string(funcs) + (funcs == 1 ? " Func" : " Funcs");
}

inline void check_names(const std::vector<Halide::Func> &funcs, const std::string &schedule,
                        const std::vector<FuncRow> &made_for) {
    for (size_t i = 0; i < std::max(funcs.size(), made_for.size()); i++) {
        const std::string now = i < funcs.size() ? "'" + name_of(funcs[i]) + "'" : "missing";
        const std::string was = i < made_for.size() ? "'" + made_for[i].name + "'" : "not there";
        const std::string counts = funcs.size() == made_for.size() ?
                                       "" :
                                       "; there are " + count_of(funcs.size()) + ", were " +
                                           std::to_string(made_for.size());
        _halide_user_assert(now == was) << "The schedule " << schedule << " was made for another pipeline: Func " << i
                                        << " is now " << now << ", was " << was << counts
                                        << ". Tune again, or give the Func its old name.\n";
    }
}

inline void check_definitions(const std::vector<Halide::Func> &funcs, const std::string &schedule,
                              const std::vector<FuncRow> &made_for, bool strict) {
    std::vector<size_t> changed;
    std::vector<FuncRow> rows(funcs.size());
    for (size_t i = 0; i < funcs.size(); i++) {
        if (made_for[i].definition == 0) continue;
        rows[i] = row_of(funcs[i], true);
        if (rows[i].definition != made_for[i].definition || rows[i].domains != made_for[i].domains) {
            changed.push_back(i);
        }
    }
    std::string named;
    for (const size_t i : changed) {
        for (const size_t k : changed) {
            _halide_user_assert(i == k || rows[i].definition != made_for[k].definition)
                << "The schedule " << schedule << " was made for another pipeline: Func " << i << " '" << rows[i].name
                << "' is defined as Func " << k << " '" << made_for[k].name
                << "' was: their order has changed. Tune again.\n";
        }
        named += (named.empty() ? "Func " : ", Func ") + std::to_string(i) + " '" + rows[i].name + "'";
    }
    if (changed.empty()) return;
    const std::string message = "The algorithm has changed since the schedule " + schedule + " was made: " + named +
                                 (changed.size() == 1 ? " is" : " are") + " defined differently. Tune again.\n";
    _halide_user_assert(!strict) << message;
    std::cerr << "Warning: " << message;
}

// Stop with a message where the Funcs are not those that the schedule was made for; warn where only their
// definitions or Halide itself have changed. If `strict`, a changed definition stops, too.
inline void check_pipeline(const Halide::Pipeline &pipeline, const std::string &schedule,
                           const std::string &halide_version, const std::vector<FuncRow> &made_for, bool strict) {
    const std::vector<Halide::Func> funcs = all_funcs(pipeline);
    check_names(funcs, schedule, made_for);
    const std::string major = std::to_string(HALIDE_VERSION_MAJOR);
    const std::string version =
        major + "." + std::to_string(HALIDE_VERSION_MINOR) + "." + std::to_string(HALIDE_VERSION_PATCH);
    if (version != halide_version) {
        std::cerr << "Warning: The schedule " << schedule << " was made with Halide " << halide_version
                  << ", and this is Halide " << version << ": time it again.\n";
    }
    // Another version may print expressions in another way.
    if (halide_version.substr(0, halide_version.find('.')) == major) {
        check_definitions(funcs, schedule, made_for, strict);
    }
}

// The index of the target that fits best, or -1: of the architecture, with no feature that `target` lacks, best of its
// operating system, then with the most features.
inline int choose_target(const std::vector<std::string> &made_for, const Halide::Target &target) {
    int best = -1, best_score = -1;
    for (size_t i = 0; i < made_for.size(); i++) {
        const Halide::Target wanted(made_for[i]);
        if (wanted.arch != target.arch || wanted.bits != target.bits) continue;
        int score = wanted.os == target.os ? Halide::Target::FeatureEnd : 0;
        bool fits = true;
        for (int f = 0; f < Halide::Target::FeatureEnd; f++) {
            const auto feature = static_cast<Halide::Target::Feature>(f);
            if (!wanted.has_feature(feature)) continue;
            fits = fits && target.has_feature(feature);
            score++;
        }
        if (fits && score > best_score) {
            best = static_cast<int>(i);
            best_score = score;
        }
    }
    return best;
}

}  // namespace halide_sdk_1

#endif  // HALIDE_SDK_PIPELINE_CHECK_1

#ifndef HALIDE_SDK_PIPELINE_RESET_1
#define HALIDE_SDK_PIPELINE_RESET_1

#include <map>
#include <sstream>
#include <string>
#include <vector>

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

namespace soften_x86_64_provenance {

inline constexpr const char *generator = "soften";
inline constexpr const char *parameters = "";
inline constexpr const char *target_profile = "x86-64";
inline constexpr const char *halide_target = "x86-64-linux-avx-avx2-f16c-fma-sse41";
inline constexpr const char *halide_version = "21.0.0";
inline constexpr const char *autoscheduler = "Adams2019";
inline constexpr const char *algorithm_hash = "66577e400f382729";
inline constexpr const char *device = "the machine that tuned it, 2 threads";
inline constexpr const char *device_fingerprint = "4e500cb3534a453a";
inline constexpr const char *clock = "wall";
inline constexpr double default_ms = 0.127323;
inline constexpr double default_spread_ms = 0.0136126;
inline constexpr double tuned_ms = 0.0534798;
inline constexpr double tuned_spread_ms = 0.00085871;
inline constexpr double tuned_low_ms = 0.0508972;
inline constexpr double tuned_high_ms = 0.067733;
inline constexpr const char *tuned_from = "play-off median of 8, geometric mean of 2 sizes";
inline constexpr double speed_up = 1.47869;
inline constexpr double speed_up_low = 1.08066;
inline constexpr double speed_up_high = 1.52588;
inline constexpr bool confirmed = true;
inline constexpr const char *verdict = "faster: 1.479 times as fast as your own schedule (95 % interval 1.081 to 1.526)";
inline constexpr int samples = 223;
inline constexpr const char *date = "2026-11-23";
inline constexpr const char *sdk_version = "0.1.0";
inline constexpr const char *weights_sha256 = "6320e6982cdce58f5de4211ab7d7d58ebee25ba9109fcb8320eee4de2264b3b3";
inline constexpr const char *sizes = "0.003243 ms at input=96x64 output=96x64; 0.8805 ms at input=1920x1080 output=1920x1080";

// The Funcs in the order of Pipeline::get_func, with hashes of their definitions and reduction domains.
inline std::vector<halide_sdk_1::FuncRow> funcs() {
    return {
        {"input_im", 0xfedb154e282c4be8u, 0xcbf29ce484222325u},
        {"lambda", 0x9dc85863093c31e9u, 0xcbf29ce484222325u},
        {"repeat_edge", 0xf5fba2b695c476aau, 0xcbf29ce484222325u},
        {"down", 0xf4a51cc7310e8e34u, 0xcbf29ce484222325u},
        {"across", 0xd91ce97d0d325692u, 0xcbf29ce484222325u},
        {"mixed", 0xc8117551ce806001u, 0xcbf29ce484222325u},
        {"output", 0x11cd7e29fc134750u, 0xcbf29ce484222325u},
    };
}

}  // namespace soften_x86_64_provenance

inline void apply_schedule_soften_x86_64(
    ::Halide::Pipeline pipeline,
    ::Halide::Target target
) {
    ::halide_sdk_1::check_pipeline(pipeline, "soften_x86_64", soften_x86_64_provenance::halide_version,
                                    soften_x86_64_provenance::funcs(), HALIDE_SDK_IS_STRICT);
    // The generator may have scheduled the pipeline itself.
    ::halide_sdk_1::reset_pipeline(pipeline);
    using ::Halide::Func;
    using ::Halide::MemoryType;
    using ::Halide::RVar;
    using ::Halide::TailStrategy;
    using ::Halide::Var;
    Func output = pipeline.get_func(6);
    Func mixed = pipeline.get_func(5);
    Func across = pipeline.get_func(4);
    Func down = pipeline.get_func(3);
    Func repeat_edge = pipeline.get_func(2);
    Func lambda_0 = pipeline.get_func(1);
    Var _0(repeat_edge.get_schedule().dims()[0].var);
    Var _0i("_0i");
    Var _1(repeat_edge.get_schedule().dims()[1].var);
    Var x(output.get_schedule().dims()[0].var);
    Var xi("xi");
    Var y(output.get_schedule().dims()[1].var);
    Var yi("yi");
    Var yii("yii");
    Var yiii("yiii");
    output
        .split(y, y, yi, 32, TailStrategy::ShiftInwards)
        .split(yi, yi, yii, 8, TailStrategy::ShiftInwards)
        .split(yii, yii, yiii, 2, TailStrategy::ShiftInwards)
        .split(x, x, xi, 32, TailStrategy::ShiftInwards)
        .unroll(yiii)
        .vectorize(xi)
        .compute_root()
        .reorder({xi, yiii, x, yii, yi, y})
        .parallel(y);
    mixed
        .store_in(MemoryType::Stack)
        .split(x, x, xi, 32, TailStrategy::RoundUp)
        .unroll(y)
        .vectorize(xi)
        .compute_at(output, x)
        .reorder({xi, x, y});
    across
        .store_in(MemoryType::Stack)
        .split(x, x, xi, 16, TailStrategy::RoundUp)
        .unroll(x)
        .unroll(y)
        .vectorize(xi)
        .compute_at(output, x)
        .reorder({xi, x, y});
    down
        .store_in(MemoryType::Stack)
        .split(x, x, xi, 32, TailStrategy::RoundUp)
        .vectorize(xi)
        .compute_at(output, yii)
        .store_at(output, yi)
        .reorder({xi, x, y});
    repeat_edge
        .store_in(MemoryType::Stack)
        .split(_0, _0, _0i, 32, TailStrategy::ShiftInwards)
        .vectorize(_0i)
        .compute_at(output, yi)
        .store_at(output, y)
        .reorder({_0i, _0, _1});
}

#endif  // soften_x86_64_SCHEDULE_H
