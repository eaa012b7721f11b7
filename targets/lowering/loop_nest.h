// The loop nest of a lowered pipeline as a tree: what each loop's body computes, reads, writes and allocates.

#ifndef HALIDE_SDK_LOOP_NEST
#define HALIDE_SDK_LOOP_NEST

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "Halide.h"
#include "../pipeline/json.h"
#include "values_at_estimates.h"

namespace halide_sdk {

inline std::string text_of(double number) {
    char text[32];
    std::snprintf(text, sizeof text, "%.12g", number);
    return text;
}

// How the lanes of an access lie: so many elements apart, or anywhere.
struct Access {
    std::string buffer;
    bool is_store = false, is_predicated = false;
    int lanes = 1, element_bytes = 1;
    std::optional<int64_t> lane_stride;
    // By loop, the outermost first, how many elements a step moves it; nothing where data decides.
    std::optional<std::vector<double>> strides;

    bool operator<(const Access &other) const { return key() < other.key(); }

private:
    using Key = std::tuple<const std::string &, bool, bool, int, int, const std::optional<int64_t> &,
                           const std::optional<std::vector<double>> &>;
    Key key() const {
        return {buffer, is_store, is_predicated, lanes, element_bytes, lane_stride, strides};
    }
};

// What one Func's stages do in the body of a loop, the loops inside left out.
struct Computation {
    // Kind of operation → how many vectors of the target's width, or scalars.
    std::map<std::string, double> operations;
    std::map<Access, int> accesses;
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

// Counts what a statement's expressions do.
class ExpressionsOf : public Halide::Internal::IRGraphVisitor {
public:
    ExpressionsOf(Computation &computation, ValuesAtEstimates &values, const Halide::Target &target, size_t depth)
        : computation_(computation), values_(values), target_(target), depth_(depth) {}

    void store(const Halide::Internal::Store *op) {
        add_access(op->name, op->value.type(), op->index, op->predicate, true);
        include(op->value);
        index(op->index);
        predicate(op->predicate);
    }

    void value(const Halide::Expr &expr) { include(expr); }

private:
    Computation &computation_;
    ValuesAtEstimates &values_;
    const Halide::Target &target_;
    const size_t depth_;
    bool is_index_ = false;

    using IRGraphVisitor::visit;

    // How many of the target's vectors a value fills; a bool takes as much room as what was compared.
    double vectors(const Halide::Type &type) const {
        if (type.is_scalar() || type.is_handle()) return 1;
        const int natural = target_.natural_vector_size(type.is_bool() ? Halide::Int(32) : type);
        return std::ceil(static_cast<double>(type.lanes()) / std::max(1, natural));
    }

    template<typename Operation>
    void count(const char *kind, const Operation *op, const Halide::Type &type) {
        const bool is_address = is_index_ && type.is_scalar();
        const std::string name = is_address ? "address" : (type.is_float() ? "float_" : "int_") + std::string(kind);
        computation_.operations[name] += vectors(type);
        IRGraphVisitor::visit(op);
    }

    void visit(const Halide::Internal::Add *op) override { count("add", op, op->type); }
    void visit(const Halide::Internal::Sub *op) override { count("add", op, op->type); }
    void visit(const Halide::Internal::Mul *op) override { count("multiply", op, op->type); }
    void visit(const Halide::Internal::Div *op) override { count("divide", op, op->type); }
    void visit(const Halide::Internal::Mod *op) override { count("divide", op, op->type); }
    void visit(const Halide::Internal::Min *op) override { count("compare", op, op->type); }
    void visit(const Halide::Internal::Max *op) override { count("compare", op, op->type); }
    void visit(const Halide::Internal::EQ *op) override { count("compare", op, op->a.type()); }
    void visit(const Halide::Internal::NE *op) override { count("compare", op, op->a.type()); }
    void visit(const Halide::Internal::LT *op) override { count("compare", op, op->a.type()); }
    void visit(const Halide::Internal::LE *op) override { count("compare", op, op->a.type()); }
    void visit(const Halide::Internal::GT *op) override { count("compare", op, op->a.type()); }
    void visit(const Halide::Internal::GE *op) override { count("compare", op, op->a.type()); }
    void visit(const Halide::Internal::Select *op) override { count("select", op, op->type); }
    void visit(const Halide::Internal::Cast *op) override { count("cast", op, op->type); }
    void visit(const Halide::Internal::Shuffle *op) override { count("shuffle", op, op->type); }
    void visit(const Halide::Internal::VectorReduce *op) override { count("reduce", op, op->value.type()); }

    void visit(const Halide::Internal::Broadcast *op) override {
        if (!is_index_) computation_.operations["broadcast"] += 1;
        IRGraphVisitor::visit(op);
    }

    void visit(const Halide::Internal::Call *op) override {
        using Halide::Internal::Call;
        const bool is_free = op->is_intrinsic(Call::likely) || op->is_intrinsic(Call::likely_if_innermost) ||
                             op->is_intrinsic(Call::promise_clamped);
        if (is_free) return IRGraphVisitor::visit(op);
        count(op->is_intrinsic() ? "intrinsic" : "call", op, op->type);
    }

    void visit(const Halide::Internal::Load *op) override {
        add_access(op->name, op->type, op->index, op->predicate, false);
        index(op->index);
        predicate(op->predicate);
    }

    // What is bound has its value while the rest is looked at.
    void visit(const Halide::Internal::Let *op) override {
        include(op->value);
        values_.push(op->name, values_.of(op->value));
        include(op->body);
        values_.pop(op->name);
    }

    void index(const Halide::Expr &expr) {
        const bool before = is_index_;
        is_index_ = true;
        include(expr);
        is_index_ = before;
    }

    void predicate(const Halide::Expr &expr) {
        if (!Halide::Internal::is_const_one(expr)) include(expr);
    }

    void add_access(const std::string &buffer, const Halide::Type &type, const Halide::Expr &index,
                    const Halide::Expr &predicate, bool is_store) {
        Access access;
        access.buffer = buffer;
        access.is_store = is_store;
        access.is_predicated = !Halide::Internal::is_const_one(predicate);
        access.lanes = type.lanes();
        access.element_bytes = type.bytes();
        access.lane_stride = lane_stride_of(index);
        const Value at = values_.of(index);
        if (at.is_known) {
            access.strides.emplace();
            for (size_t i = 0; i < depth_; i++) access.strides->push_back(at.slope(i));
        }
        computation_.accesses[access]++;
    }

    // Nothing where the lanes are anywhere.
    std::optional<int64_t> lane_stride_of(const Halide::Expr &index) {
        using namespace Halide::Internal;
        if (index.type().is_scalar() || index.as<Broadcast>()) return 0;
        if (const auto *ramp = index.as<Ramp>()) {
            const Value stride = values_.of(ramp->stride);
            if (ramp->base.type().is_scalar() && stride.is_known) return static_cast<int64_t>(stride.number);
        }
        return std::nullopt;
    }
};

// Walks a lowered statement, and makes the tree.
class LoopNest : public Halide::Internal::IRVisitor {
public:
    LoopNest(const Halide::Target &target, const EstimatedArguments &arguments)
        : target_(target), values_(arguments.values()) {
        root_.kind = "root";
        root_.extent = 1;
    }

    const Loop &root() const { return root_; }

private:
    // What holds in so much of the iterations, as the guard of a last tile does, holds always.
    static constexpr double mostly = 0.97;

    const Halide::Target &target_;
    ValuesAtEstimates values_;
    Loop root_;
    Loop *around_ = &root_;
    size_t depth_ = 0;
    // Of the loops around, the outermost first.
    std::vector<double> extents_;
    std::vector<std::string> funcs_ = {""};

    using IRVisitor::visit;

    ExpressionsOf here() { return {around_->computations[funcs_.back()], values_, target_, depth_}; }

    void visit(const Halide::Internal::ProducerConsumer *op) override {
        if (op->is_producer) funcs_.push_back(op->name);
        op->body.accept(this);
        if (op->is_producer) funcs_.pop_back();
    }

    void visit(const Halide::Internal::For *op) override {
        auto loop = std::make_unique<Loop>();
        loop->name = op->name;
        loop->func = funcs_.back();
        loop->kind = kind_of(op->for_type);
        const Value extent = values_.of(op->extent);
        if (extent.is_known) loop->extent = std::max(0.0, extent.number);
        if (loop->extent && *loop->extent == 0) return;
        Value at = values_.of(op->min);
        if (at.is_known) {
            at.number += std::floor(loop->extent.value_or(1) / 2);
            at.slopes.resize(depth_ + 1);
            at.slopes[depth_] = 1;
        }
        values_.push(op->name, at);
        body_of(std::move(loop), op->body);
        values_.pop(op->name);
    }

    void body_of(std::unique_ptr<Loop> loop, const Halide::Internal::Stmt &body) {
        Loop *outside = around_;
        around_ = loop.get();
        extents_.push_back(loop->extent.value_or(1));
        outside->loops.push_back(std::move(loop));
        depth_++;
        body.accept(this);
        depth_--;
        extents_.pop_back();
        around_ = outside;
    }

    static const char *kind_of(Halide::Internal::ForType type) {
        using Halide::Internal::ForType;
        switch (type) {
        case ForType::Parallel: return "parallel";
        case ForType::GPUBlock: return "gpu_block";
        case ForType::GPUThread: return "gpu_thread";
        case ForType::GPULane: return "gpu_lane";
        default: return "serial";
        }
    }

    void visit(const Halide::Internal::LetStmt *op) override {
        here().value(op->value);
        values_.push(op->name, values_.of(op->value));
        if (op->value.type().is_bool()) values_.name_condition(op->name, op->value);
        op->body.accept(this);
        values_.pop(op->name);
    }

    void visit(const Halide::Internal::Store *op) override { here().store(op); }

    void visit(const Halide::Internal::Evaluate *op) override { here().value(op->value); }

    // It checks arguments once a call.
    void visit(const Halide::Internal::AssertStmt *) override {}

    void visit(const Halide::Internal::Allocate *op) override {
        Allocation allocation;
        allocation.buffer = op->name;
        allocation.memory = op->memory_type;
        allocation.is_constant = op->constant_allocation_size() > 0;
        double bytes = op->type.bytes();
        bool is_known = true;
        for (const Halide::Expr &extent : op->extents) {
            const Value value = values_.of(extent);
            is_known = is_known && value.is_known;
            bytes *= value.number;
        }
        if (is_known) allocation.bytes = bytes;
        around_->allocations.push_back(allocation);
        op->body.accept(this);
    }

    // Each case as often as it is taken; where data decides, as if always.
    void visit(const Halide::Internal::IfThenElse *op) override {
        const auto share = values_.share(op->condition, extents_);
        around_->branches++;
        here().value(op->condition);
        branch(op->then_case, share.value_or(1));
        if (op->else_case.defined()) branch(op->else_case, share ? 1 - *share : 1);
    }

    void branch(const Halide::Internal::Stmt &body, double share) {
        if (share >= mostly) return body.accept(this);
        if (share <= 1 - mostly) return;
        auto loop = std::make_unique<Loop>();
        loop->func = funcs_.back();
        loop->kind = "branch";
        loop->extent = share;
        body_of(std::move(loop), body);
    }
};

inline std::string json_of(const std::optional<double> &number) { return number ? text_of(*number) : "null"; }

inline std::string json_of(const std::pair<const Access, int> &counted) {
    const Access &access = counted.first;
    const auto number = [](double value) { return text_of(value); };
    return object({{"buffer", quoted(access.buffer)},
                   {"count", std::to_string(counted.second)},
                   {"is_store", truth(access.is_store)},
                   {"is_predicated", truth(access.is_predicated)},
                   {"lanes", std::to_string(access.lanes)},
                   {"element_bytes", std::to_string(access.element_bytes)},
                   {"lane_stride", access.lane_stride ? std::to_string(*access.lane_stride) : "null"},
                   {"strides", access.strides ? list_of(*access.strides, number) : "null"}});
}

inline std::string json_of(const std::pair<const std::string, Computation> &named) {
    std::vector<std::pair<std::string, std::string>> operations;
    for (const auto &one : named.second.operations) operations.emplace_back(one.first, text_of(one.second));
    const auto access = [](const std::pair<const Access, int> &one) { return json_of(one); };
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
