// The loop nest of a lowered pipeline as a tree: what each loop's body computes, reads, writes and allocates.

#ifndef HALIDE_SDK_LOOP_NEST
#define HALIDE_SDK_LOOP_NEST

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "Halide.h"
#include "loop.h"
#include "values_at_estimates.h"

namespace halide_sdk {

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
        values_.push(op->name, op->value);
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
        if (at.is_bounded()) {
            access.strides.emplace();
            for (size_t i = 0; i < depth_; i++) access.strides->push_back(at.slope(i));
            if (!access.lane_stride && at.lane_slope) access.spread.emplace_back(*at.lane_slope, access.lanes);
            if (!at.is_known) access.spread.emplace_back(at.step, at.steps());
        }
        computation_.accesses[access].push_back(at.is_bounded() ? std::floor(at.number) : 0);
    }

    // Nothing where the lanes are gathered.
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
    // The loops around, the outermost first.
    std::vector<LoopAround> loops_;
    // Those of them of which it is settled whether this is the first iteration.
    std::set<std::string> settled_;
    std::vector<std::string> funcs_ = {""};

    using IRVisitor::visit;

    ExpressionsOf here() { return {around_->computations[funcs_.back()], values_, target_, loops_.size()}; }

    void visit(const Halide::Internal::ProducerConsumer *op) override {
        if (op->is_producer) funcs_.push_back(op->name);
        op->body.accept(this);
        if (op->is_producer) funcs_.pop_back();
    }

    void visit(const Halide::Internal::For *op) override {
        const Value extent = values_.of(op->extent);
        if (extent.is_known && extent.number <= 0) {
            return in_first_iterations([&] { return values_.of(op->extent).number_or(0); }, op);
        }
        const auto other = loop_that_begins_otherwise(op->extent, extent);
        if (other) return apart_from_first_iteration(*other, op);
        auto loop = std::make_unique<Loop>();
        loop->name = op->name;
        loop->func = funcs_.back();
        loop->kind = kind_of(op->for_type);
        if (extent.is_known) loop->extent = extent.number;
        values_.push_loop(op->name, op->min, loop->extent.value_or(1), loops_.size());
        body_of(std::move(loop), op->body);
        values_.pop(op->name);
    }

    // The loop around in whose first iteration an extent is so much larger or smaller than in the others that it counts.
    std::optional<LoopAround> loop_that_begins_otherwise(const Halide::Expr &expr, const Value &extent) {
        std::optional<LoopAround> found;
        double most = (1 - mostly) * extent.number;
        for (size_t i = 0; extent.is_known && i < loops_.size(); i++) {
            const LoopAround &loop = loops_[i];
            if (!has_others(loop)) continue;
            const Value first = values_.in_first_iteration(loop.name, [&] { return values_.of(expr); });
            const double expected = extent.number - extent.slope(i) * std::floor(loop.extent / 2);
            const double apart = std::abs(std::max(0.0, first.number) - std::max(0.0, expected)) / loop.extent;
            if (!first.is_known || apart <= most) continue;
            most = apart;
            found = loop;
        }
        return found;
    }

    // A branch for the first iteration of a loop around, and one for the others.
    void apart_from_first_iteration(const LoopAround &loop, const Halide::Internal::Stmt &statement) {
        settled_.insert(loop.name);
        values_.in_first_iteration(loop.name, [&] { branch(statement, 1 / loop.extent); });
        branch(statement, 1 - 1 / loop.extent);
        settled_.erase(loop.name);
    }

    // A statement that runs only in first iterations of loops around it, so often in each: each has a branch.
    template<typename TimesIn>
    void in_first_iterations(TimesIn times_in, const Halide::Internal::Stmt &statement) {
        // A branch is a loop, too.
        const std::vector<LoopAround> around = loops_;
        for (const LoopAround &loop : around) {
            if (!has_others(loop)) continue;
            settled_.insert(loop.name);
            values_.in_first_iteration(loop.name, [&] {
                const double times = times_in();
                if (times / loop.extent > 1 - mostly) branch(statement, std::min(1.0, times) / loop.extent);
            });
            settled_.erase(loop.name);
        }
    }

    // Whether the first iteration of a loop is to be told from others.
    bool has_others(const LoopAround &loop) const { return loop.extent > 1 && !settled_.count(loop.name); }

    void body_of(std::unique_ptr<Loop> loop, const Halide::Internal::Stmt &body) {
        Loop *outside = around_;
        around_ = loop.get();
        loops_.push_back({loop->name, loop->extent.value_or(1)});
        outside->loops.push_back(std::move(loop));
        body.accept(this);
        loops_.pop_back();
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
        values_.push(op->name, op->value);
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
        const auto share_of = [&] { return values_.share(op->condition, loops_); };
        const auto share = share_of();
        around_->branches++;
        here().value(op->condition);
        case_of(op->then_case, share.value_or(1), [&] { return share_of().value_or(0); });
        if (!op->else_case.defined()) return;
        case_of(op->else_case, share ? 1 - *share : 1, [&] { return 1 - share_of().value_or(1); });
    }

    template<typename ShareOf>
    void case_of(const Halide::Internal::Stmt &body, double share, ShareOf share_in_first) {
        if (share == 0) return in_first_iterations(share_in_first, body);
        if (share >= mostly) return body.accept(this);
        if (share > 1 - mostly) branch(body, share);
    }

    void branch(const Halide::Internal::Stmt &body, double share) {
        auto loop = std::make_unique<Loop>();
        loop->func = funcs_.back();
        loop->kind = "branch";
        loop->extent = share;
        body_of(std::move(loop), body);
    }
};

}  // namespace halide_sdk

#endif
