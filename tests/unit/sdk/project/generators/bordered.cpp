// Gives all estimates; its output is as large as its input, through a boundary condition.

#include "Halide.h"

using namespace Halide;

class Bordered : public Generator<Bordered> {
public:
    Input<Buffer<uint8_t, 2>> input{"input"};
    Input<Buffer<uint8_t, 2>> mask{"mask"};
    Input<Buffer<int32_t, 1>> taps{"taps"};
    Input<int> shift{"shift", 1};
    Output<Buffer<uint8_t, 2>> output{"output"};

    void generate() {
        Var x("x"), y("y");
        RDom k(0, 3);
        Func bordered = BoundaryConditions::repeat_edge(input);
        output(x, y) = cast<uint8_t>((sum(bordered(x + k - 1, y) * taps(k)) >> shift) * mask(x, y));
        input.set_estimates({{0, 256}, {0, 128}});
        mask.set_estimates({{0, 256}, {0, 128}});
        taps.set_estimates({{0, 3}});
        shift.set_estimate(2);
        output.set_estimates({{0, 256}, {0, 128}});
    }
};

HALIDE_REGISTER_GENERATOR(Bordered, bordered)
