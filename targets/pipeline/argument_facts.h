// The arguments of a generator's function, and the sizes and values that are known or proposed for them.

#ifndef HALIDE_SDK_ARGUMENT_FACTS
#define HALIDE_SDK_ARGUMENT_FACTS

#include <cstdio>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "Halide.h"
#include "estimates.h"

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

inline std::string quoted(const std::string &text) {
    std::string result = "\"";
    for (const unsigned char c : text) {
        char escaped[8];
        std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
        if (c < 0x20 || c == '"' || c == '\\') {
            result += escaped;
        } else {
            result += static_cast<char>(c);
        }
    }
    return result + "\"";
}

inline std::string name_of(const Halide::Type &type) {
    const std::string bits = std::to_string(type.bits());
    if (type.is_handle()) return "handle";
    if (type.is_bfloat()) return "bfloat" + bits;
    return (type.is_float() ? "float" : type.is_uint() ? "uint" : "int") + bits;
}

inline void write_json(std::ostream &out, const ArgumentFacts &argument) {
    out << "{\"name\": " << quoted(argument.name) << ", \"kind\": \"" << argument.kind << "\", \"type\": \""
        << name_of(argument.type) << "\", ";
    if (argument.kind == "input_scalar") {
        out << "\"value\": " << quoted(argument.value) << ", \"source\": \"" << name_of(argument.source) << "\"}";
        return;
    }
    out << "\"dimensions\": [";
    for (size_t i = 0; i < argument.dimensions.size(); i++) {
        const Dimension &dimension = argument.dimensions[i];
        out << (i ? ", " : "") << "{\"min\": " << dimension.range.min << ", \"extent\": " << dimension.range.extent
            << ", \"source\": \"" << name_of(dimension.source) << "\", \"required\": ";
        if (dimension.required) {
            out << "[" << dimension.required->min << ", " << dimension.required->extent << "]}";
        } else {
            out << "null}";
        }
    }
    out << "]}";
}

}  // namespace halide_sdk_1

#endif
