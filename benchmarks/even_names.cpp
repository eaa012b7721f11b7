// An autoscheduler that runs another one and then evens out Halide's count of temporary names.
//
// Some autoschedulers lower parts of the pipeline to decide, and use up names. Lowering sorts what a parallel loop
// captures by those names, so that the same schedule gives another layout when it is applied without the search. From
// an equal count on, equal schedules give equal code.
//
// Parameter, beside those of the other autoscheduler: `search` (its name).

#include <cstdio>
#include <cstdlib>
#include <string>

#include "Halide.h"

namespace {

const int first_name = 1000000;

struct EvenNames {
    void operator()(const Halide::Pipeline &pipeline, const Halide::Target &target,
                    const Halide::AutoschedulerParams &given, Halide::AutoSchedulerResults *results) {
        Halide::AutoschedulerParams parameters = given;
        parameters.name = parameters.extra.at("search");
        parameters.extra.erase("search");
        Halide::Pipeline scheduled = pipeline;
        *results = scheduled.apply_autoscheduler(target, parameters);
        std::string name = Halide::Internal::unique_name('t');
        const int used = std::atoi(name.c_str() + 1);
        for (int i = used; i < first_name; i++) {
            Halide::Internal::unique_name('t');
        }
    }
};

struct Register {
    Register() { Halide::Pipeline::add_autoscheduler("SdkEvenNames", EvenNames()); }
} at_load;

}  // namespace
