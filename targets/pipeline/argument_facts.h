// The arguments of a generator's function, and the sizes and values that are known or proposed for them.

#ifndef HALIDE_SDK_ARGUMENT_FACTS
#define HALIDE_SDK_ARGUMENT_FACTS

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "Halide.h"
#include "estimates.h"
#include "json.h"

namespace halide_sdk_1 {

// Where a size or a value comes from, the best first: the user, the generator, what the others imply, a guess.
enum class Source { Missing, Given, Generator, Inferred, Default };

inline const char *name_of(Source source) {
    switch (source) {
    case Source::Given: return "given";
    case Source::Generator: return "generator";
    case Source::Inferred: return "inferred";
    case Source::Default: return "default";
    default: return "missing";
    }
}

struct Dimension {
    Range range{0, 1};
    Source source = Source::Missing;
    // What the outputs need of it, where that is known.
    std::optional<Range> required;

    bool is_known() const { return source != Source::Missing; }

    void set(int64_t min, int64_t extent, Source from) {
        range = {static_cast<int>(min), static_cast<int>(extent)};
        source = from;
    }
};

struct ArgumentFacts {
    std::string name, kind;
    Halide::Type type;
    std::vector<Dimension> dimensions;
    // Of scalars.
    std::string value;
    Source source = Source::Missing;

    bool is_known() const {
        for (const Dimension &dimension : dimensions) {
            if (!dimension.is_known()) return false;
        }
        return true;
    }
};

inline std::string name_of(const Halide::Type &type) {
    const std::string bits = std::to_string(type.bits());
    if (type.is_handle()) return "handle";
    if (type.is_bfloat()) return "bfloat" + bits;
    return (type.is_float() ? "float" : type.is_uint() ? "uint" : "int") + bits;
}

inline std::string json_of(const Range &range) {
    return halide_sdk::listed({std::to_string(range.min), std::to_string(range.extent)});
}

inline std::string json_of(const Dimension &dimension) {
    using halide_sdk::quoted;
    return halide_sdk::object({{"min", std::to_string(dimension.range.min)},
                               {"extent", std::to_string(dimension.range.extent)},
                               {"source", quoted(name_of(dimension.source))},
                               {"required", dimension.required ? json_of(*dimension.required) : "null"}});
}

inline std::string json_of(const ArgumentFacts &argument) {
    using halide_sdk::quoted;
    const auto dimension = [](const Dimension &one) { return json_of(one); };
    std::vector<std::pair<std::string, std::string>> members = {{"name", quoted(argument.name)},
                                                                {"kind", quoted(argument.kind)},
                                                                {"type", quoted(name_of(argument.type))}};
    if (argument.kind == "input_scalar") {
        members.emplace_back("value", quoted(argument.value));
        members.emplace_back("source", quoted(name_of(argument.source)));
    } else {
        members.emplace_back("dimensions", halide_sdk::list_of(argument.dimensions, dimension));
    }
    return halide_sdk::object(members);
}

}  // namespace halide_sdk_1

#endif
