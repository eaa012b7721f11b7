// A soft-focus filter: a wide blur mixed with the picture, made brighter. It schedules itself, without a guard, and then
// applies what `sdk ship` wrote into schedules/.
//
// input and output are (x, y), uint8. Edges are repeated. Small pictures need another schedule than large ones, so the
// generator is built once for each, and schedule_size says for which.

#include "Halide.h"

#if __has_include("schedules/soften.schedule.h")
#include "schedules/soften.schedule.h"
#define HAS_TUNED_SCHEDULE
#endif

namespace {

class Soften : public Halide::Generator<Soften> {
public:
    GeneratorParam<std::string> schedule_size{"schedule_size", ""};

    Input<Buffer<uint8_t, 2>> input{"input"};
    Output<Buffer<uint8_t, 2>> output{"output"};

    void generate() {
        Var x("x"), y("y");
        Func padded("padded");
        padded = Halide::BoundaryConditions::repeat_edge(input);
        Func down("down"), across("across"), mixed("mixed");
        Expr column = Halide::cast<uint16_t>(0), row = Halide::cast<uint32_t>(0);
        for (int k = -4; k <= 4; k++) {
            column += Halide::cast<uint16_t>(padded(x, y + k));
        }
        down(x, y) = column;
        for (int k = -4; k <= 4; k++) {
            row += Halide::cast<uint32_t>(down(x + k, y));
        }
        across(x, y) = Halide::cast<uint16_t>(row / 81);
        mixed(x, y) = (across(x, y) * 3 + Halide::cast<uint16_t>(padded(x, y)) * 2) / 4;
        output(x, y) = Halide::cast<uint8_t>(Halide::min(mixed(x, y), 255));

        input.set_estimates({{0, 96}, {0, 64}});
        output.set_estimates({{0, 96}, {0, 64}});

        output.parallel(y).vectorize(x, 16);
        down.compute_at(output, y).vectorize(x, 16);
#ifdef HAS_TUNED_SCHEDULE
        if (!using_autoscheduler()) {
            apply_schedule_soften(get_pipeline(), get_target(), schedule_size);
        }
#endif
    }
};

}  // namespace

HALIDE_REGISTER_GENERATOR(Soften, soften)
