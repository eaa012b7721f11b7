// A loop nest as data, and as the JSON that loop_nest.py reads.

#ifndef HALIDE_SDK_LOOP
#define HALIDE_SDK_LOOP

#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "Halide.h"
#include "../pipeline/json.h"
#include "copies.h"

namespace halide_sdk {

inline std::string text_of(double number) {
    char text[32];
    std::snprintf(text, sizeof text, "%.12g", number);
    return text;
}

// How the lanes of an access lie: so many elements apart, or as `spread` says.
struct Access {
    std::string buffer;
    bool is_store = false, is_predicated = false;
    int lanes = 1, element_bytes = 1;
    std::optional<int64_t> lane_stride;
    // By loop, the outermost first, how many elements a step moves it; nothing where data decides within no bounds.
    std::optional<std::vector<double>> strides;
    // What moves it besides loops, as strides with numbers of steps: lanes that are gathered, and data within bounds.
    std::vector<std::pair<double, double>> spread;

    bool operator<(const Access &other) const { return key() < other.key(); }

private:
    using Key = std::tuple<const std::string &, bool, bool, int, int, const std::optional<int64_t> &,
                           const std::optional<std::vector<double>> &,
                           const std::vector<std::pair<double, double>> &>;
    Key key() const {
        return {buffer, is_store, is_predicated, lanes, element_bytes, lane_stride, strides, spread};
    }
};

// What one Func's stages do in the body of a loop, the loops inside left out.
struct Computation {
    // Kind of operation → how many vectors of the target's width, or scalars.
    std::map<std::string, double> operations;
    // Accesses that are alike → where each is in the middle of the loops; 0 where data decides, and without bounds.
    std::map<Access, std::vector<double>> accesses;
};

struct Allocation {
    std::string buffer;
    // Unknown where data decides.
    std::optional<double> bytes;
    bool is_constant = false;
    Halide::MemoryType memory = Halide::MemoryType::Auto;
};

struct Loop {
    std::string name, func, kind;
    // Unknown where data decides.
    std::optional<double> extent;
    int branches = 0;
    std::map<std::string, Computation> computations;
    std::vector<Allocation> allocations;
    std::vector<std::unique_ptr<Loop>> loops;
};

inline std::string json_of(const std::optional<double> &number) { return number ? text_of(*number) : "null"; }

inline std::string moves_of(double stride, double steps) { return "[" + text_of(stride) + ", " + text_of(steps) + "]"; }

inline std::string json_of(const std::pair<const Access, std::vector<double>> &placed) {
    const Access &access = placed.first;
    const auto number = [](double value) { return text_of(value); };
    const auto copies = [](const Copies &one) { return moves_of(one.stride, one.steps); };
    const auto spread = [](const auto &one) { return moves_of(one.first, one.second); };
    return object({{"buffer", quoted(access.buffer)},
                   {"count", std::to_string(placed.second.size())},
                   {"copies", list_of(copies_at(placed.second), copies)},
                   {"is_store", truth(access.is_store)},
                   {"is_predicated", truth(access.is_predicated)},
                   {"lanes", std::to_string(access.lanes)},
                   {"element_bytes", std::to_string(access.element_bytes)},
                   {"lane_stride", access.lane_stride ? std::to_string(*access.lane_stride) : "null"},
                   {"strides", access.strides ? list_of(*access.strides, number) : "null"},
                   {"spread", list_of(access.spread, spread)}});
}

inline std::string json_of(const std::pair<const std::string, Computation> &named) {
    std::vector<std::pair<std::string, std::string>> operations;
    for (const auto &one : named.second.operations) operations.emplace_back(one.first, text_of(one.second));
    const auto access = [](const auto &one) { return json_of(one); };
    return object({{"func", quoted(named.first)},
                   {"operations", object(operations)},
                   {"accesses", list_of(named.second.accesses, access)}});
}

inline const char *name_of(const Allocation &allocation) {
    switch (allocation.memory) {
    case Halide::MemoryType::Stack: return "stack";
    case Halide::MemoryType::Register: return "register";
    case Halide::MemoryType::GPUShared: return "gpu_shared";
    case Halide::MemoryType::LockedCache: return "locked_cache";
    case Halide::MemoryType::VTCM: return "vtcm";
    default: return "heap";
    }
}

inline std::string json_of(const Allocation &allocation) {
    return object({{"buffer", quoted(allocation.buffer)},
                   {"bytes", json_of(allocation.bytes)},
                   {"is_constant", truth(allocation.is_constant)},
                   {"memory", quoted(name_of(allocation))}});
}

inline std::string json_of(const Loop &loop) {
    const auto computation = [](const std::pair<const std::string, Computation> &one) { return json_of(one); };
    const auto allocation = [](const Allocation &one) { return json_of(one); };
    const auto inside = [](const std::unique_ptr<Loop> &one) { return json_of(*one); };
    return object({{"name", quoted(loop.name)},
                   {"func", quoted(loop.func)},
                   {"kind", quoted(loop.kind)},
                   {"extent", json_of(loop.extent)},
                   {"branches", std::to_string(loop.branches)},
                   {"computations", list_of(loop.computations, computation)},
                   {"allocations", list_of(loop.allocations, allocation)},
                   {"loops", list_of(loop.loops, inside)}});
}

}  // namespace halide_sdk

#endif
