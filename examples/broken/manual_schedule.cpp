// For tests: a generator that schedules itself although an autoscheduler was asked for.

#include "Halide.h"

namespace {

class ManualSchedule : public Halide::Generator<ManualSchedule> {
public:
    Input<Buffer<uint8_t, 2>> input{"input"};
    Output<Buffer<uint8_t, 2>> output{"output"};

    void generate() {
        Var x("x"), y("y");
        Func doubled("doubled");
        doubled(x, y) = input(x, y) * 2;
        output(x, y) = doubled(x, y) + doubled(x + 1, y);

        input.set_estimates({{0, 641}, {0, 480}});
        output.set_estimates({{0, 640}, {0, 480}});

        doubled.compute_root();
        output.vectorize(x, 16).parallel(y);
    }
};

}  // namespace

HALIDE_REGISTER_GENERATOR(ManualSchedule, manual_schedule)
