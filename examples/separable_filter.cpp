// Separable blur of an 8-bit planar image with binomial (Gaussian-like) weights, all in integers.
//
// input and output are (x, y, channel), uint8. Edges are repeated. The weights of one direction are the
// binomial coefficients C(2 * radius, k), whose sum is 4 ** radius, so the division is a shift.

#include "Halide.h"

namespace {

class SeparableFilter : public Halide::Generator<SeparableFilter> {
public:
    GeneratorParam<int> width{"width", 1920};
    GeneratorParam<int> height{"height", 1080};
    GeneratorParam<int> channels{"channels", 3};
    GeneratorParam<int> radius{"radius", 3};  // 1 to 4: with 4 a column's sum just fits 16 bits

    Input<Buffer<uint8_t, 3>> input{"input"};
    Output<Buffer<uint8_t, 3>> output{"output"};

    void generate() {
        _halide_user_assert(radius >= 1 && radius <= 4)
            << "separable_filter: radius is " << (int)radius << "; it must be from 1 to 4\n";
        Var x("x"), y("y"), c("c");
        Func clamped = Halide::BoundaryConditions::repeat_edge(input);

        std::vector<int> weights(2 * radius + 1, 1);
        for (int k = 1; k <= 2 * radius; k++) {
            weights[k] = weights[k - 1] * (2 * radius - k + 1) / k;
        }

        Func columns("columns");
        Expr column_sum = cast<uint16_t>(0);
        for (int k = 0; k <= 2 * radius; k++) {
            column_sum += cast<uint16_t>(weights[k]) * cast<uint16_t>(clamped(x, y + k - radius, c));
        }
        columns(x, y, c) = column_sum;

        Expr total = cast<uint32_t>(1 << (4 * radius - 1));  // half of the divisor, to round to nearest
        for (int k = 0; k <= 2 * radius; k++) {
            total += cast<uint32_t>(weights[k]) * cast<uint32_t>(columns(x + k - radius, y, c));
        }
        output(x, y, c) = cast<uint8_t>(total >> (4 * radius));

        input.set_estimates({{0, width}, {0, height}, {0, channels}});
        output.set_estimates({{0, width}, {0, height}, {0, channels}});

        if (!using_autoscheduler()) {
            const int lanes = natural_vector_size<uint16_t>();
            output.parallel(y).vectorize(x, lanes);
            columns.compute_at(output, y).vectorize(x, lanes);
        }
    }
};

}  // namespace

HALIDE_REGISTER_GENERATOR(SeparableFilter, separable_filter)
