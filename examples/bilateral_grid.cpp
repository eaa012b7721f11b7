// Edge-preserving smoothing of an 8-bit image with a bilateral grid (Chen, Paris, Durand 2007).
//
// input is (x, y), uint8; output is (x, y), float32 in 0 to 255. Pixels are summed and counted in the
// cells of a coarse grid (x / cell, y / cell, value >> range_bits); the grid is blurred with (1, 2, 1)
// along its three axes and read back by trilinear interpolation. It holds integers, so its content does
// not depend on the schedule. amount blends between the input (0) and the filtered image (1). Edges are
// repeated.

#include "Halide.h"

namespace {

class BilateralGrid : public Halide::Generator<BilateralGrid> {
public:
    GeneratorParam<int> width{"width", 1536};
    GeneratorParam<int> height{"height", 1024};
    GeneratorParam<int> cell{"cell", 8};              // pixels on a side of a cell: 2 to 32
    GeneratorParam<int> range_bits{"range_bits", 4};  // a cell is 2 ** range_bits values deep: 1 to 7

    Input<Buffer<uint8_t, 2>> input{"input"};
    Input<float> amount{"amount"};
    Output<Buffer<float, 2>> output{"output"};

    void generate() {
        const int size = cell, bits = range_bits;
        _halide_user_assert(size >= 2 && size <= 32)
            << "bilateral_grid: cell is " << size << "; it must be from 2 to 32\n";
        _halide_user_assert(bits >= 1 && bits <= 7)
            << "bilateral_grid: range_bits is " << bits << "; it must be from 1 to 7\n";
        Func clamped = Halide::BoundaryConditions::repeat_edge(input);

        // Each pixel goes to the nearest node of the grid: the sum of the values and their number.
        Func grid("grid");
        RDom r(0, size, 0, size, "r");
        Expr pixel = cast<int>(clamped(x * size + r.x - size / 2, y * size + r.y - size / 2));
        Expr node = clamp((pixel + (1 << (bits - 1))) >> bits, 0, 256 >> bits);
        grid(x, y, z) = Tuple(cast<int>(0), cast<int>(0));
        grid(x, y, node) = Tuple(grid(x, y, node)[0] + pixel, grid(x, y, node)[1] + 1);

        Func blur_z = blur("blur_z", [&](int k) { return Tuple(grid(x, y, z + k)); });
        Func blur_x = blur("blur_x", [&](int k) { return Tuple(blur_z(x + k, y, z)); });
        Func blur_y = blur("blur_y", [&](int k) { return Tuple(blur_x(x, y + k, z)); });

        Expr value = cast<int>(input(x, y));
        const std::vector<Expr> fractions = {
            cast<float>(x % size) / (float)size,
            cast<float>(y % size) / (float)size,
            cast<float>(value & ((1 << bits) - 1)) / (float)(1 << bits),
        };
        const std::vector<Expr> near = {x / size, y / size, value >> bits};
        Expr total = trilinear(blur_y, 0, near, fractions, {});
        Expr count = trilinear(blur_y, 1, near, fractions, {});
        output(x, y) = lerp(cast<float>(value), total / count, amount);

        input.set_estimates({{0, width}, {0, height}});
        amount.set_estimate(0.8f);
        output.set_estimates({{0, width}, {0, height}});

        if (!using_autoscheduler()) {
            const int lanes = natural_vector_size<float>();
            grid.compute_root().parallel(y);
            grid.update().parallel(y);
            for (Func func : {blur_z, blur_x, blur_y}) {
                func.compute_root().parallel(y).vectorize(x, lanes);
            }
            output.parallel(y, 8).vectorize(x, lanes);
        }
    }

private:
    Var x{"x"}, y{"y"}, z{"z"};

    // (1, 2, 1) along one axis; at(k) is the Tuple (sum, count) k nodes along it.
    Func blur(const std::string &name, const std::function<Tuple(int)> &at) {
        auto weighted = [&](int i) { return at(-1)[i] + 2 * at(0)[i] + at(1)[i]; };
        Func blurred(name);
        blurred(x, y, z) = Tuple(weighted(0), weighted(1));
        return blurred;
    }

    // Element part of func between the eight nodes at near and near + 1; at holds the axes already chosen.
    Expr trilinear(Func func, int part, const std::vector<Expr> &near, const std::vector<Expr> &fractions,
                   const std::vector<Expr> &at) {
        const size_t axis = at.size();
        if (axis == 3) {
            return cast<float>(func(at)[part]);
        }
        std::vector<Expr> low = at, high = at;
        low.push_back(near[axis]);
        high.push_back(near[axis] + 1);
        Expr low_value = trilinear(func, part, near, fractions, low);
        Expr high_value = trilinear(func, part, near, fractions, high);
        return lerp(low_value, high_value, fractions[axis]);
    }
};

}  // namespace

HALIDE_REGISTER_GENERATOR(BilateralGrid, bilateral_grid)
