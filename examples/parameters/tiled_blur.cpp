// A blur with a schedule written by hand. Its numbers are generator parameters, which sdk.toml in this folder tunes:
//
//   cd examples/parameters && sdk autotune --target host --budget 5m

#include "Halide.h"

class TiledBlur : public Halide::Generator<TiledBlur> {
public:
    GeneratorParam<int> width{"width", 1536};
    GeneratorParam<int> height{"height", 1024};

    // The schedule: size of the tiles that run in parallel, and of its vectors.
    GeneratorParam<int> tile_x{"tile_x", 64};
    GeneratorParam<int> tile_y{"tile_y", 32};
    GeneratorParam<int> vector{"vector", 8};

    Input<Buffer<uint16_t, 2>> input{"input"};
    Output<Buffer<uint16_t, 2>> output{"output"};

    void generate() {
        Func padded = Halide::BoundaryConditions::repeat_edge(input);
        across(x, y) = (padded(x - 1, y) + padded(x, y) + padded(x + 1, y)) / 3;
        output(x, y) = (across(x, y - 1) + across(x, y) + across(x, y + 1)) / 3;

        input.set_estimates({{0, width}, {0, height}});
        output.set_estimates({{0, width}, {0, height}});
    }

    void schedule() {
        if (using_autoscheduler()) {
            return;
        }
        Var tile_row("tile_row"), tile_column("tile_column"), within_x("within_x"), within_y("within_y");
        output.tile(x, y, tile_column, tile_row, within_x, within_y, tile_x, tile_y)
            .parallel(tile_row)
            .vectorize(within_x, vector);
        across.compute_at(Func(output), tile_column).vectorize(x, vector);
    }

private:
    Var x{"x"}, y{"y"};
    Func across{"across"};
};

HALIDE_REGISTER_GENERATOR(TiledBlur, tiled_blur)
