// An autoscheduler that schedules nothing: it writes down the pipeline's Funcs and ends the process.
//
// Parameter: `table_path`. A line for each Func, in the order of their indices: name, hash of the definition, hash of
// the domains of its reductions, hexadecimal; separated by tabs.

#include "Halide.h" // first: it is parsed once for all plug-ins

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <unistd.h>

#include "pipeline_check.h"

namespace {

// Expressions that share parts can be far longer as text than in memory.
constexpr double largest_text_nodes = 200000;

// How many nodes expressions have as text.
class TextSize : public Halide::Internal::IRGraphVisitor {
public:
    double nodes = 0;

    using IRGraphVisitor::include;

    void include(const Halide::Expr &expr) override {
        const auto found = known_.find(expr.get());
        if (found != known_.end()) {
            nodes += found->second;
            return;
        }
        const double before = nodes++;
        expr.accept(this);
        known_[expr.get()] = nodes - before;
    }

    void include_all(const Halide::Tuple &values) {
        for (const Halide::Expr &value : values.as_vector()) {
            include(value);
        }
    }

private:
    std::map<const void *, double> known_;
};

bool can_be_printed(const Halide::Func &func) {
    if (!func.defined() || func.is_extern()) return true;
    TextSize size;
    size.include_all(func.values());
    for (int i = 0; i < func.num_update_definitions(); i++) {
        size.include_all(func.update_values(i));
        for (const Halide::Expr &arg : func.update_args(i)) {
            size.include(arg);
        }
    }
    return size.nodes <= largest_text_nodes;
}

struct WriteTable {
    void operator()(const Halide::Pipeline &pipeline, const Halide::Target &,
                    const Halide::AutoschedulerParams &parameters, Halide::AutoSchedulerResults *) {
        const auto path = parameters.extra.find("table_path");
        FILE *file = path == parameters.extra.end() ? nullptr : std::fopen(path->second.c_str(), "w");
        if (file == nullptr) {
            std::fprintf(stderr, "SdkFuncTable: the table cannot be written\n");
            _exit(1);
        }
        for (const Halide::Func &func : halide_sdk_1::all_funcs(pipeline)) {
            const auto row = halide_sdk_1::row_of(func, can_be_printed(func));
            std::fprintf(file, "%s\t%016llx\t%016llx\n", row.name.c_str(), (unsigned long long)row.definition,
                         (unsigned long long)row.domains);
        }
        _exit(std::fclose(file) == 0 ? 0 : 1);
    }
};

struct Register {
    Register() { Halide::Pipeline::add_autoscheduler("SdkFuncTable", WriteTable()); }
} at_load;

}  // namespace
