// A 3 by 3 box blur that is scheduled by what `sdk ship` wrote into schedules/.
//
// input and output are (x, y), uint16. Edges are repeated.

#include "Halide.h"

#if __has_include("schedules/blur.schedule.h")
#include "schedules/blur.schedule.h"
#define HAS_TUNED_SCHEDULE
#endif

namespace {

class Blur : public Halide::Generator<Blur> {
public:
    Input<Buffer<uint16_t, 2>> input{"input"};
    Output<Buffer<uint16_t, 2>> output{"output"};

    void generate() {
        Var x("x"), y("y");
        Func padded = Halide::BoundaryConditions::repeat_edge(input);
        Func across("across");
        across(x, y) = (padded(x - 1, y) + padded(x, y) + padded(x + 1, y)) / 3;
        output(x, y) = (across(x, y - 1) + across(x, y) + across(x, y + 1)) / 3;

        input.set_estimates({{0, 1536}, {0, 1024}});
        output.set_estimates({{0, 1536}, {0, 1024}});

        if (!using_autoscheduler()) {
#ifdef HAS_TUNED_SCHEDULE
            apply_schedule_blur(get_pipeline(), get_target());
#else
            across.compute_root();
            output.compute_root();
#endif
        }
    }
};

}  // namespace

HALIDE_REGISTER_GENERATOR(Blur, blur)
