// Pipelines of several kinds, small enough to compile in every sketch.

#include "Halide.h"

using namespace Halide;

namespace {

class Stencils : public Generator<Stencils> {
public:
    Input<Buffer<uint8_t, 3>> input{"input"};
    Output<Buffer<uint8_t, 3>> output{"output"};

    void generate() {
        Var x("x"), y("y"), c("c");
        Func edges = BoundaryConditions::repeat_edge(input);
        Func wide("wide"), across("across"), down("down");
        wide(x, y, c) = cast<uint16_t>(edges(x, y, c));
        across(x, y, c) = wide(x - 2, y, c) + 4 * wide(x - 1, y, c) + 6 * wide(x, y, c) + 4 * wide(x + 1, y, c) +
                          wide(x + 2, y, c);
        down(x, y, c) = across(x, y - 2, c) + 4 * across(x, y - 1, c) + 6 * across(x, y, c) +
                        4 * across(x, y + 1, c) + across(x, y + 2, c);
        output(x, y, c) = cast<uint8_t>(down(x, y, c) >> 8);
        input.set_estimates({{0, 512}, {0, 256}, {0, 3}});
        output.set_estimates({{0, 512}, {0, 256}, {0, 3}});
    }
};

class Bins : public Generator<Bins> {
public:
    Input<Buffer<uint8_t, 2>> input{"input"};
    Output<Buffer<uint8_t, 2>> output{"output"};

    void generate() {
        Var x("x"), y("y");
        RDom columns(0, 512), rows(0, 256), bins(1, 255);
        Func bright("bright"), of_row("of_row"), all("all"), sums("sums");
        bright(x, y) = cast<uint8_t>(cast<int>(input(x, y)) * input(x, y) / 255 ^ 7);
        of_row(x, y) = 0;
        of_row(cast<int>(bright(columns, y)), y) += 1;
        all(x) = 0;
        all(x) += of_row(x, rows);
        sums(x) = all(0);
        sums(bins) = sums(bins - 1) + all(bins);
        output(x, y) = cast<uint8_t>(sums(clamp(cast<int>(bright(x, y)), 0, 255)) * 255 / (512 * 256));
        input.set_estimates({{0, 512}, {0, 256}});
        output.set_estimates({{0, 512}, {0, 256}});
    }
};

class Statistics : public Generator<Statistics> {
public:
    Input<Buffer<uint8_t, 3>> input{"input"};
    Output<Buffer<uint32_t, 1>> bins{"bins"}, means{"means"}, columns{"columns"};
    Output<Buffer<float, 0>> brightness{"brightness"};

    void generate() {
        Var x("x"), c("c"), bin("bin");
        RDom all(0, input.width(), 0, input.height(), "all"), rows(0, input.height(), "rows");
        const Expr grey = (input(all.x, all.y, 0) + 2 * cast<uint16_t>(input(all.x, all.y, 1))) / 3;
        bins(bin) = cast<uint32_t>(0);
        bins(clamp(cast<int>(grey), 0, 255)) += cast<uint32_t>(1);
        means(c) = cast<uint32_t>(0);
        means(c) += cast<uint32_t>(input(all.x, all.y, c));
        columns(x) = cast<uint32_t>(0);
        columns(x) += cast<uint32_t>(input(x, rows, 1));
        brightness() = 0.0f;
        brightness() += sqrt(cast<float>(grey));
        input.set_estimates({{0, 515}, {0, 301}, {0, 3}});
        bins.set_estimates({{0, 256}});
        means.set_estimates({{0, 3}});
        columns.set_estimates({{0, 515}});
        brightness.set_estimates({});
    }
};

class Product : public Generator<Product> {
public:
    Input<Buffer<int32_t, 2>> left{"left"}, right{"right"};
    Output<Buffer<int32_t, 2>> output{"output"};

    void generate() {
        Var x("x"), y("y");
        RDom steps(0, 96);
        Func total("total");
        total(x, y) += left(steps, y) * right(x, steps);
        output(x, y) = total(x, y) + 1;
        left.set_estimates({{0, 96}, {0, 512}});
        right.set_estimates({{0, 128}, {0, 96}});
        output.set_estimates({{0, 128}, {0, 512}});
    }
};

class Pyramid : public Generator<Pyramid> {
public:
    Input<Buffer<float, 2>> input{"input"};
    Output<Buffer<float, 2>> output{"output"};

    void generate() {
        Var x("x"), y("y");
        Func level = BoundaryConditions::repeat_edge(input);
        std::vector<Func> down{level};
        for (int i = 0; i < 3; i++) {
            Func half("down_" + std::to_string(i));
            half(x, y) = (down[i](2 * x, 2 * y) + down[i](2 * x + 1, 2 * y) + down[i](2 * x, 2 * y + 1) +
                          down[i](2 * x + 1, 2 * y + 1) + down[i](2 * x - 1, 2 * y)) / 5;
            down.push_back(half);
        }
        Func up = down[3];
        for (int i = 2; i >= 0; i--) {
            Func twice("up_" + std::to_string(i));
            twice(x, y) = (up(x / 2, y / 2) + up((x + 1) / 2, (y + 1) / 2)) / 2 + down[i](x, y);
            up = twice;
        }
        output(x, y) = up(x, y);
        input.set_estimates({{0, 512}, {0, 256}});
        output.set_estimates({{0, 512}, {0, 256}});
    }
};

class Scan : public Generator<Scan> {
public:
    Input<Buffer<float, 2>> input{"input"};
    Output<Buffer<float, 2>> output{"output"};

    void generate() {
        Var x("x"), y("y");
        RDom rows(1, 255);
        Func along("along");
        along(x, y) = input(x, y);
        along(x, rows) = along(x, rows - 1) / 2 + input(x, rows);
        output(x, y) = along(y, x);
        input.set_estimates({{0, 256}, {0, 256}});
        output.set_estimates({{0, 256}, {0, 256}});
    }
};

// Goes along the rows of three large pictures, and then along their columns.
class Planes : public Generator<Planes> {
public:
    Input<Buffer<float, 3>> input{"input"};
    Output<Buffer<float, 3>> output{"output"};

    void generate() {
        Var x("x"), y("y"), c("c");
        RDom rows(1, 1023);
        Func along("along"), turned("turned"), again("again");
        along(x, y, c) = input(x, y, c);
        along(x, rows, c) = along(x, rows - 1, c) / 2 + input(x, rows, c);
        turned(x, y, c) = along(y, x, c);
        again(x, y, c) = turned(x, y, c);
        again(x, rows, c) = again(x, rows - 1, c) / 2 + turned(x, rows, c);
        output(x, y, c) = again(y, x, c);
        input.set_estimates({{0, 1024}, {0, 1024}, {0, 3}});
        output.set_estimates({{0, 1024}, {0, 1024}, {0, 3}});
    }
};

// What goes along the rows of a picture, read at three columns.
class Spread : public Generator<Spread> {
public:
    Input<Buffer<float, 2>> input{"input"};
    Output<Buffer<float, 2>> output{"output"};

    void generate() {
        Var x("x"), y("y");
        RDom rows(1, 1023);
        Func along("along");
        Func picture = BoundaryConditions::repeat_edge(input);
        along(x, y) = picture(x, y);
        along(x, rows) = along(x, rows - 1) / 2 + picture(x, rows);
        output(x, y) = along(x - 3, y) + along(x, y) + along(x + 3, y);
        input.set_estimates({{0, 1024}, {0, 1024}});
        output.set_estimates({{0, 1024}, {0, 1024}});
    }
};

// Many versions of a picture, which are all made smaller; of each point two of them are read, and data say which.
class Versions : public Generator<Versions> {
public:
    Input<Buffer<float, 2>> input{"input"};
    Output<Buffer<float, 2>> output{"output"};

    void generate() {
        Var x("x"), y("y"), k("k");
        Func versions("versions"), half("half"), small("small"), detail("detail");
        Func grey = BoundaryConditions::repeat_edge(input);
        Expr far = grey(x, y) - k / 8.0f;
        versions(x, y, k) = sqrt(abs(far)) * 2 + far * far * far / (1 + far * far) + sqrt(abs(grey(x, y)) + k);
        half(x, y, k) = versions(x, 2 * y - 1, k) + 3 * (versions(x, 2 * y, k) + versions(x, 2 * y + 1, k)) +
                        versions(x, 2 * y + 2, k);
        small(x, y, k) = half(2 * x - 1, y, k) + 3 * (half(2 * x, y, k) + half(2 * x + 1, y, k)) + half(2 * x + 2, y, k);
        Expr row = clamp(cast<int>(grey(x, y) * 255), 0, 255);
        detail(x, y, k) = versions(x, y, k) - (small(x / 2, row, k) + small((x + 1) / 2, row, k)) / 20;
        Expr level = clamp(cast<int>(grey(x, y) * 7), 0, 6);
        output(x, y) = detail(x, y, level) + detail(x, y, level + 1);
        input.set_estimates({{0, 768}, {0, 512}});
        output.set_estimates({{0, 768}, {0, 512}});
    }
};

// Sums of sums: how alike a point's surroundings are to those of its neighbours.
class Patches : public Generator<Patches> {
public:
    Input<Buffer<float, 2>> input{"input"};
    Output<Buffer<float, 2>> output{"output"};

    void generate() {
        Var x("x"), y("y"), k("k");
        RDom patch(-3, 7), neighbours(0, 32);
        Func grey = BoundaryConditions::repeat_edge(input);
        Func apart("apart"), down("down"), across("across"), alike("alike");
        apart(x, y, k) = pow(grey(x, y) - grey(x + k, y), 2);
        down(x, y, k) += apart(x, y + patch, k);
        across(x, y, k) += down(x + patch, y, k);
        alike(x, y) += exp(-across(x, y, neighbours)) * grey(x + neighbours, y);
        output(x, y) = alike(x, y) / 32;
        input.set_estimates({{0, 1536}, {0, 512}});
        output.set_estimates({{0, 1536}, {0, 512}});
    }
};

// A picture of three colours from one whose every second point is of one colour.
class Mosaic : public Generator<Mosaic> {
public:
    Input<Buffer<uint16_t, 2>> input{"input"};
    Output<Buffer<uint8_t, 3>> output{"output"};

    void generate() {
        Var x("x"), y("y"), c("c");
        Func red_points("red_points"), red("red"), green("green"), colour("colour"), smooth("smooth");
        Func raw = BoundaryConditions::repeat_edge(input);
        red_points(x, y) = raw(2 * x, 2 * y) + raw(2 * x + 1, 2 * y) / 2 + raw(2 * x, 2 * y + 1) / 3;
        green(x, y) = raw(2 * x + 1, 2 * y) + raw(2 * x, 2 * y + 1);
        Expr near = (red_points(x / 2, y / 2) + red_points(x / 2 + 1, y / 2)) / 2;
        Expr far = (red_points(x / 2, y / 2) + red_points(x / 2, y / 2 + 1) + green(x / 2, y / 2)) / 3;
        red(x, y) = select(x % 2 == 0, near, far) * 3 / 4 + select(y % 2 == 0, far, near) / 4;
        colour(x, y, c) = (red(x, y) * (c + 1) + green(x / 2, y / 2) * (3 - c)) / 8;
        smooth(x, y, c) = (colour(x, y - 1, c) + 2 * colour(x, y, c) + colour(x, y + 1, c)) / 4;
        output(x, y, c) = cast<uint8_t>(smooth(x, y, c) >> 4);
        input.set_estimates({{0, 512}, {0, 256}});
        output.set_estimates({{0, 512}, {0, 256}, {0, 3}});
    }
};

class Phases : public Generator<Phases> {
public:
    Input<Buffer<uint16_t, 2>> input{"input"};
    Output<Buffer<uint16_t, 2>> output{"output"};

    void generate() {
        Var x("x"), y("y");
        Func even("even"), odd("odd"), sharp("sharp");
        auto between = [&](Expr a, Expr b, Expr c) { return select(absd(a, b) < absd(b, c), (a + b) / 2, (b + c) / 2); };
        Expr at = 2 * x + 2, row = 2 * y + 2;
        even(x, y) = between(input(at - 2, row), input(at, row), input(at + 2, row)) * 3 / 4 + input(at, row + 1) / 4;
        odd(x, y) = between(input(at, row - 2), input(at, row), input(at, row + 2)) * 3 / 4 + input(at + 1, row) / 4;
        sharp(x, y) = select(x % 2 == 0, even(x / 2, y / 2), odd(x / 2, y / 2));
        output(x, y) = (sharp(x, y) + sharp(x + 1, y) + sharp(x, y + 1)) / 3;
        input.set_estimates({{0, 600}, {0, 400}});
        output.set_estimates({{0, 512}, {0, 384}});
    }
};

class Enlarged : public Generator<Enlarged> {
public:
    Input<Buffer<float, 2>> input{"input"};
    Output<Buffer<float, 2>> output{"output"};

    void generate() {
        Var x("x"), y("y");
        Func coarse("coarse");
        coarse(x, y) = sqrt(input(x * 8, y * 8)) + sqrt(input(x * 8 + 1, y * 8)) + sqrt(input(x * 8, y * 8 + 1));
        output(x, y) = lerp(coarse(x / 8, y / 8), coarse(x / 8, y / 8 + 1), cast<float>(y % 8) / 8.f);
        input.set_estimates({{0, 1024}, {0, 1024}});
        output.set_estimates({{0, 1000}, {0, 1000}});
    }
};

// The colours of a picture through matrices, which are looked up in a grid of them by how light a pixel is.
class Slices : public Generator<Slices> {
public:
    Input<Buffer<float, 3>> input{"input"};
    Input<Buffer<float, 4>> grid{"grid"};
    Output<Buffer<float, 3>> output{"output"};

    void generate() {
        Var x("x"), y("y"), z("z"), k("k"), c("c");
        Func smooth("smooth"), place("place"), matrix("matrix");
        smooth(x, y, z, k) = (grid(x, y, z, k) + 2.f * grid(x + 1, y, z, k) + grid(x, y + 1, z, k)) / 4.f;
        Expr light = clamp((input(x, y, 0) + 2.f * input(x, y, 1) + input(x, y, 2)) / 4.f, 0.f, 1.f) * 7.f;
        place(x, y) = Tuple(cast<int>(light), light - cast<int>(light));
        Expr low = place(x, y)[0], part = place(x, y)[1];
        matrix(x, y, k) = lerp(smooth(x / 16, y / 16, low, k), smooth(x / 16, y / 16, low + 1, k), part);
        output(x, y, c) = matrix(x, y, 4 * c) * input(x, y, 0) + matrix(x, y, 4 * c + 1) * input(x, y, 1) +
                          matrix(x, y, 4 * c + 2) * input(x, y, 2) + matrix(x, y, 4 * c + 3);
        input.set_estimates({{0, 640}, {0, 480}, {0, 3}});
        grid.set_estimates({{0, 41}, {0, 31}, {0, 9}, {0, 12}});
        output.set_estimates({{0, 640}, {0, 480}, {0, 3}});
    }
};

// Channels that are computed each in its own way.
class Tones : public Generator<Tones> {
public:
    Input<Buffer<uint8_t, 3>> input{"input"};
    Output<Buffer<uint8_t, 3>> output{"output"};

    void generate() {
        Var x("x"), y("y"), c("c");
        Func grey("grey");
        Expr red = cast<float>(input(x, y, 0)), blue = cast<float>(input(x, y, 2));
        grey(x, y) = sqrt(red * red + blue * blue);
        Expr warm = clamp(grey(x, y) + 1.4f * red, 0, 255), cold = clamp(grey(x, y) - 0.3f * blue, 0, 255);
        output(x, y, c) = cast<uint8_t>(mux(c, {warm, clamp(2 * cold - warm, 0, 255), cold}));
        input.set_estimates({{0, 640}, {0, 480}, {0, 3}});
        output.set_estimates({{0, 640}, {0, 480}, {0, 3}});
    }
};

}  // namespace

HALIDE_REGISTER_GENERATOR(Stencils, stencils)
HALIDE_REGISTER_GENERATOR(Bins, bins)
HALIDE_REGISTER_GENERATOR(Enlarged, enlarged)
HALIDE_REGISTER_GENERATOR(Mosaic, mosaic)
HALIDE_REGISTER_GENERATOR(Phases, phases)
HALIDE_REGISTER_GENERATOR(Product, product)
HALIDE_REGISTER_GENERATOR(Pyramid, pyramid)
HALIDE_REGISTER_GENERATOR(Planes, planes)
HALIDE_REGISTER_GENERATOR(Scan, scan)
HALIDE_REGISTER_GENERATOR(Slices, slices)
HALIDE_REGISTER_GENERATOR(Spread, spread)
HALIDE_REGISTER_GENERATOR(Statistics, statistics)
HALIDE_REGISTER_GENERATOR(Tones, tones)
HALIDE_REGISTER_GENERATOR(Versions, versions)
HALIDE_REGISTER_GENERATOR(Patches, patches)
