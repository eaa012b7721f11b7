#include "Halide.h"
#include "stages.h"

class Sharpen : public Halide::Generator<Sharpen> {
public:
    GeneratorParam<int> strength{"strength", 1};

    Input<Buffer<uint8_t, 2>> input{"input"};
    Output<Buffer<uint8_t, 2>> output{"output"};

    void generate() {
        Var x("x"), y("y");
        Func padded = Halide::BoundaryConditions::repeat_edge(input);
        Func wide("wide");
        wide(x, y) = cast<int16_t>(padded(x, y));
        Func blurred = averaged(averaged(wide, "across", 1, 0), "down", 0, 1);
        output(x, y) = Halide::saturating_cast<uint8_t>(wide(x, y) + int(strength) * (wide(x, y) - blurred(x, y)));

        input.set_estimates({{0, 1536}, {0, 1024}});
        output.set_estimates({{0, 1536}, {0, 1024}});
        if (!using_autoscheduler()) {
            blurred.compute_root();
        }
    }
};

HALIDE_REGISTER_GENERATOR(Sharpen, sharpen)
