// Indices that say something only when looked through.

#include "Halide.h"

using namespace Halide;

namespace {

class Indices : public Generator<Indices> {
public:
    Input<Buffer<uint8_t, 1>> input{"input"};
    Output<Buffer<int32_t, 1>> output{"output"};

    void generate() {
        Var x("x"), y("y");
        Func table("table"), by_data("by_data"), enlarged("enlarged");
        table(x, y) = x * y + 3;
        Expr place = cast<int>(input(x)) / 3;
        by_data(x) = table(place, x) + table(place + 1, x);
        enlarged(x) = by_data(x / 2) + by_data((x + 1) / 2);
        output(x) = enlarged(x) + enlarged(x + 1);
        input.set_estimates({{0, 256}});
        output.set_estimates({{0, 256}});
    }
};

}  // namespace

HALIDE_REGISTER_GENERATOR(Indices, indices)
