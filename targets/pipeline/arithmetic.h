// How many operations compute values.
#pragma once

#include "Halide.h"

namespace halide_sdk_1 {

// What is computed of values: not of the places that are read, which mostly become additions to pointers.
class ArithmeticOf : public Halide::Internal::IRGraphVisitor {
public:
    int operations = 0;

    explicit ArithmeticOf(const Halide::Internal::Definition &definition) {
        for (const Halide::Expr &value : definition.values()) {
            Halide::Internal::substitute_in_all_lets(value).accept(this);
        }
    }

private:
    using IRGraphVisitor::visit;

    template<typename Operation>
    void count(const Operation *op) {
        operations++;
        IRGraphVisitor::visit(op);
    }

    void visit(const Halide::Internal::Add *op) override { count(op); }
    void visit(const Halide::Internal::Sub *op) override { count(op); }
    void visit(const Halide::Internal::Mul *op) override { count(op); }
    void visit(const Halide::Internal::Div *op) override { count(op); }
    void visit(const Halide::Internal::Mod *op) override { count(op); }
    void visit(const Halide::Internal::Min *op) override { count(op); }
    void visit(const Halide::Internal::Max *op) override { count(op); }
    void visit(const Halide::Internal::EQ *op) override { count(op); }
    void visit(const Halide::Internal::NE *op) override { count(op); }
    void visit(const Halide::Internal::LT *op) override { count(op); }
    void visit(const Halide::Internal::LE *op) override { count(op); }
    void visit(const Halide::Internal::GT *op) override { count(op); }
    void visit(const Halide::Internal::GE *op) override { count(op); }
    void visit(const Halide::Internal::And *op) override { count(op); }
    void visit(const Halide::Internal::Or *op) override { count(op); }
    void visit(const Halide::Internal::Not *op) override { count(op); }
    void visit(const Halide::Internal::Select *op) override { count(op); }

    void visit(const Halide::Internal::Call *op) override {
        using Halide::Internal::Call;
        if (op->call_type == Call::Halide || op->call_type == Call::Image) return;
        count(op);
    }
};

}  // namespace halide_sdk_1
