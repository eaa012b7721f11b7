#ifndef soften_SCHEDULES_H
#define soften_SCHEDULES_H

// MACHINE GENERATED -- DO NOT EDIT
// Schedules of soften for x86-64-linux-avx-avx2-f16c-fma-sse41.

#include "Halide.h"

#include "soften.x86-64.schedule.h"
#include "soften.x86-64.at_96x64.schedule.h"

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

// Apply the schedule that fits `target` best. False, and nothing is done, where none does. With a `size` such as
// "640x480" it is the target's schedule for that size, where it has one.
inline bool try_apply_schedule_soften(
    ::Halide::Pipeline pipeline,
    ::Halide::Target target,
    const std::string &size = ""
) {
    const int chosen = ::halide_sdk_1::choose_target({"x86-64-linux-avx-avx2-f16c-fma-sse41"}, target);
    if (chosen < 0) return false;
    void (*const schedules[])(::Halide::Pipeline, ::Halide::Target) = {apply_schedule_soften_x86_64};
    void (*schedule)(::Halide::Pipeline, ::Halide::Target) = schedules[chosen];
    _halide_user_assert(size.empty() || size == "96x64")
        << "There is no schedule of soften for the size " << size << "; there are some for 96x64.\n";
    if (chosen == 0 && size == "96x64") schedule = apply_schedule_soften_x86_64_at_96x64;
    schedule(pipeline, target);
    return true;
}

inline void apply_schedule_soften(
    ::Halide::Pipeline pipeline,
    ::Halide::Target target,
    const std::string &size = ""
) {
    _halide_user_assert(try_apply_schedule_soften(pipeline, target, size))
        << "There is no schedule of soften for " << target.to_string() << "; there are some for x86-64-linux-avx-avx2-f16c-fma-sse41. "
        << "Tune it for that target, or call try_apply_schedule_soften and schedule it yourself "
        << "where that returns false.\n";
}

#endif  // soften_SCHEDULES_H
