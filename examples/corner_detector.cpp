// Corner response of Harris and Stephens (1988) over an 8-bit RGB image.
//
// input is (x, y, 3), uint8; response is (x, y), float32. Luma, Sobel gradients, their products summed
// over a square window, then det(M) - sensitivity * trace(M) ** 2. Edges are repeated.

#include "Halide.h"

namespace {

class CornerDetector : public Halide::Generator<CornerDetector> {
public:
    GeneratorParam<int> width{"width", 1536};
    GeneratorParam<int> height{"height", 1024};
    GeneratorParam<int> radius{"radius", 1};  // of the window

    Input<Buffer<uint8_t, 3>> input{"input"};
    Input<float> sensitivity{"sensitivity"};
    Output<Buffer<float, 2>> response{"response"};

    void generate() {
        _halide_user_assert(radius >= 1)
            << "corner_detector: radius is " << (int)radius << "; it must be 1 or more\n";
        Func clamped = Halide::BoundaryConditions::repeat_edge(input);

        Func luma("luma");
        Expr red = cast<float>(clamped(x, y, 0));
        Expr green = cast<float>(clamped(x, y, 1));
        Expr blue = cast<float>(clamped(x, y, 2));
        luma(x, y) = (0.299f * red + 0.587f * green + 0.114f * blue) / 255.0f;

        Func gradient_x("gradient_x"), gradient_y("gradient_y");
        gradient_x(x, y) = ((luma(x + 1, y - 1) - luma(x - 1, y - 1)) +
                            2.0f * (luma(x + 1, y) - luma(x - 1, y)) +
                            (luma(x + 1, y + 1) - luma(x - 1, y + 1))) /
                           8.0f;
        gradient_y(x, y) = ((luma(x - 1, y + 1) - luma(x - 1, y - 1)) +
                            2.0f * (luma(x, y + 1) - luma(x, y - 1)) +
                            (luma(x + 1, y + 1) - luma(x + 1, y - 1))) /
                           8.0f;

        Func xx = window_sum("xx", gradient_x(x, y) * gradient_x(x, y));
        Func xy = window_sum("xy", gradient_x(x, y) * gradient_y(x, y));
        Func yy = window_sum("yy", gradient_y(x, y) * gradient_y(x, y));
        Expr determinant = xx(x, y) * yy(x, y) - xy(x, y) * xy(x, y);
        Expr trace = xx(x, y) + yy(x, y);
        response(x, y) = determinant - sensitivity * trace * trace;

        input.set_estimates({{0, width}, {0, height}, {0, 3}});
        sensitivity.set_estimate(0.04f);
        response.set_estimates({{0, width}, {0, height}});

        if (!using_autoscheduler()) {
            const int lanes = natural_vector_size<float>();
            response.parallel(y, 8).vectorize(x, lanes);
            for (Func func : {luma, gradient_x, gradient_y}) {
                func.compute_root().parallel(y, 8).vectorize(x, lanes);
            }
        }
    }

private:
    Var x{"x"}, y{"y"};

    // The sum of value, an expression in x and y, over the window around each pixel.
    Func window_sum(const std::string &name, const Expr &value) {
        Func product("product_" + name);
        product(x, y) = value;
        const int reach = radius;
        Expr total = 0.0f;
        for (int dy = -reach; dy <= reach; dy++) {
            for (int dx = -reach; dx <= reach; dx++) {
                total += product(x + dx, y + dy);
            }
        }
        Func summed("sum_" + name);
        summed(x, y) = total;
        return summed;
    }
};

}  // namespace

HALIDE_REGISTER_GENERATOR(CornerDetector, corner_detector)
