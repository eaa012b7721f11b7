// Edges of an 8-bit image, all in integers: smoothed, Sobel's gradient, and made thicker.
//
// input and output are (x, y), uint8; the strength of an edge is |gx| + |gy| of the smoothed image, at most 255,
// and the output is the strongest within `thickness` pixels. The image's edges are repeated.

#include "Halide.h"

namespace {

class EdgeDetector : public Halide::Generator<EdgeDetector> {
public:
    GeneratorParam<int> width{"width", 1920};
    GeneratorParam<int> height{"height", 1080};
    GeneratorParam<int> thickness{"thickness", 1};

    Input<Buffer<uint8_t, 2>> input{"input"};
    Output<Buffer<uint8_t, 2>> output{"output"};

    void generate() {
        _halide_user_assert(thickness >= 0 && thickness <= 3)
            << "edge_detector: thickness is " << (int)thickness << "; it must be from 0 to 3\n";
        Var x("x"), y("y");
        Func clamped = Halide::BoundaryConditions::repeat_edge(input);

        Func columns("columns"), smooth("smooth");
        const Expr weight = cast<uint16_t>(2);
        columns(x, y) = cast<uint16_t>(clamped(x, y - 1)) + weight * cast<uint16_t>(clamped(x, y)) +
                        cast<uint16_t>(clamped(x, y + 1));
        smooth(x, y) = cast<uint8_t>(
            (columns(x - 1, y) + weight * columns(x, y) + columns(x + 1, y) + cast<uint16_t>(8)) >> cast<uint16_t>(4));

        auto at = [&](int dx, int dy) { return cast<int16_t>(smooth(x + dx, y + dy)); };
        const Expr two = cast<int16_t>(2);
        Func across("across"), down("down"), strength("strength");
        across(x, y) = at(1, -1) + two * at(1, 0) + at(1, 1) - at(-1, -1) - two * at(-1, 0) - at(-1, 1);
        down(x, y) = at(-1, 1) + two * at(0, 1) + at(1, 1) - at(-1, -1) - two * at(0, -1) - at(1, -1);
        const Expr steepness = cast<int16_t>(abs(across(x, y))) + cast<int16_t>(abs(down(x, y)));  // at most 2040
        strength(x, y) = cast<uint8_t>(min(steepness, cast<int16_t>(255)));

        Func widened("widened");
        const int reach = thickness;
        Expr widest = strength(x, y);
        for (int offset = -reach; offset <= reach; offset++) {
            widest = max(widest, strength(x + offset, y));
        }
        widened(x, y) = widest;
        Expr highest = widened(x, y);
        for (int offset = -reach; offset <= reach; offset++) {
            highest = max(highest, widened(x, y + offset));
        }
        output(x, y) = highest;

        input.set_estimates({{0, width}, {0, height}});
        output.set_estimates({{0, width}, {0, height}});

        if (!using_autoscheduler()) {
            const int lanes = natural_vector_size<uint8_t>();
            output.parallel(y).vectorize(x, lanes);
            for (Func stage : {smooth, strength}) {
                stage.compute_root().parallel(y).vectorize(x, lanes);
            }
        }
    }
};

}  // namespace

HALIDE_REGISTER_GENERATOR(EdgeDetector, edge_detector)
