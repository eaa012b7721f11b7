// For tests: a generator that no autoscheduler takes, because its inputs and its output have no estimates.

#include "Halide.h"

namespace {

class MissingEstimates : public Halide::Generator<MissingEstimates> {
public:
    Input<Buffer<uint8_t, 2>> input{"input"};
    Input<uint8_t> offset{"offset"};
    Output<Buffer<uint8_t, 2>> output{"output"};

    void generate() {
        Var x("x"), y("y");
        output(x, y) = input(x, y) + offset;
    }
};

}  // namespace

HALIDE_REGISTER_GENERATOR(MissingEstimates, missing_estimates)
