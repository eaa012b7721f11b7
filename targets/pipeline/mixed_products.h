// Products of a signed and an unsigned value, as Halide's code generators meet them in vectors: that for RISC-V takes
// the wrong instruction for each (`MatchRISCVIntrisic` in Halide 21's CodeGen_RISCV.cpp).
#pragma once

#include "Halide.h"

#include <map>
#include <string>

namespace halide_sdk_1 {

// An expression as if it were computed for several points at once: what is read becomes a vector without a place.
class InVectors : public Halide::Internal::IRGraphMutator {
public:
    // Func → the narrowest type that holds its values, if that is narrower than its own.
    explicit InVectors(const std::map<std::string, Halide::Type> &narrow) : narrow(narrow) {}

private:
    using IRGraphMutator::visit;
    using Expr = Halide::Expr;

    static constexpr int lanes = 16;
    const std::map<std::string, Halide::Type> &narrow;
    int reads = 0;

    static Halide::Type wide(const Halide::Type &type) { return type.with_lanes(lanes); }

    static Expr repeated(const Expr &constant) { return Halide::Internal::Broadcast::make(constant, lanes); }

    // Equal reads are one node, and are mutated once; different ones of a Func have different names.
    Expr read(const std::string &name, const Halide::Type &type) {
        const auto narrower = narrow.find(name);
        const std::string unique = name + "@" + std::to_string(reads++);
        if (narrower == narrow.end()) return Halide::Internal::Variable::make(wide(type), unique);
        const Expr value = Halide::Internal::Variable::make(wide(narrower->second), unique);
        return Halide::Internal::Cast::make(wide(type), value);
    }

    Expr visit(const Halide::Internal::IntImm *op) override { return repeated(op); }
    Expr visit(const Halide::Internal::UIntImm *op) override { return repeated(op); }
    Expr visit(const Halide::Internal::FloatImm *op) override { return repeated(op); }

    Expr visit(const Halide::Internal::Variable *op) override {
        return Halide::Internal::Variable::make(wide(op->type), op->name);
    }

    Expr visit(const Halide::Internal::Cast *op) override {
        return Halide::Internal::Cast::make(wide(op->type), mutate(op->value));
    }

    Expr visit(const Halide::Internal::Reinterpret *op) override {
        return Halide::Internal::Reinterpret::make(wide(op->type), mutate(op->value));
    }

    Expr visit(const Halide::Internal::Call *op) override {
        using Halide::Internal::Call;
        if (op->call_type == Call::Halide || op->call_type == Call::Image) return read(op->name, op->type);
        return Call::make(wide(op->type), op->name, mutate(op->args), op->call_type);
    }
};

class MixedProducts : public Halide::Internal::IRGraphVisitor {
public:
    bool found = false;

private:
    using IRGraphVisitor::visit;

    void visit(const Halide::Internal::Call *op) override {
        if (op->is_intrinsic(Halide::Internal::Call::widening_mul)) {
            found |= op->args[0].type().is_int() != op->args[1].type().is_int();
        }
        IRGraphVisitor::visit(op);
    }
};

// Which values Halide's vector code for a target computes wrongly: none where it is right.
class WrongVectors {
public:
    explicit WrongVectors(const Halide::Target &target) : is_doubtful(target.has_feature(Halide::Target::RVV)) {}

    // Producers come first. A Func may hold values of a narrower type than its own, as `i16(u)` where `u` is of bytes:
    // what it is inlined into meets the narrower one.
    void add(const Halide::Internal::Function &function) {
        if (!is_doubtful || !function.has_pure_definition() || function.has_update_definition()) return;
        const Halide::Type type = function.output_types()[0];
        if (function.outputs() != 1 || !type.is_int_or_uint()) return;
        using namespace Halide::Internal;
        try {
            const Halide::Expr value = in_vectors(function.values()[0], narrow);
            for (int bits = 8; bits < type.bits(); bits *= 2) {
                for (const Halide::Type &narrower : {type.with_bits(bits), Halide::UInt(bits)}) {
                    if (!lossless_cast(narrower.with_lanes(value.type().lanes()), value).defined()) continue;
                    narrow[function.name()] = narrower;
                    return;
                }
            }
        } catch (const Halide::Error &) {
            // What is in no vector by itself has no narrower type.
        }
    }

    bool is_narrow(const std::string &function) const { return narrow.count(function) > 0; }

    // Whether a definition's values are wrong as they are written, or once what they read is inlined.
    bool are_in(const Halide::Internal::Definition &definition, bool inlined) const {
        if (!is_doubtful) return false;
        using namespace Halide::Internal;
        MixedProducts products;
        try {
            for (const Halide::Expr &value : definition.values()) {
                find_intrinsics(in_vectors(value, inlined ? narrow : nothing)).accept(&products);
            }
        } catch (const Halide::Error &) {
            return false; // of what is in no vector by itself nothing is known
        }
        return products.found;
    }

private:
    const bool is_doubtful;
    const std::map<std::string, Halide::Type> nothing;
    std::map<std::string, Halide::Type> narrow;

    static Halide::Expr in_vectors(const Halide::Expr &value, const std::map<std::string, Halide::Type> &narrow) {
        using namespace Halide::Internal;
        return simplify(InVectors(narrow).mutate(simplify(substitute_in_all_lets(value))));
    }
};

}  // namespace halide_sdk_1
