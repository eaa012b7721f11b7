// From a sensor's Bayer mosaic to a picture, all in integers.
//
// raw is (x, y), uint16, 10 bits used, in RGGB order (red at even x and even y); its edges are mirrored,
// which keeps the order of colours. output is (x, y, 3), uint8. Steps: black level and white balance,
// demosaicing (green along the direction that changes less, red and blue bilinear), colour matrix, tone
// curve from a table, sharpening.
//
// Scalars: black_level in raw units; gain_red and gain_blue in 1/256; tone in raw units, smaller for
// brighter shadows; sharpness in 1/32, up to 127. matrix is (input channel, output channel), int16, in
// 1/256.

#include "Halide.h"

namespace {

using namespace Halide;

const int white = 1023;  // the largest value of a 10-bit sensor

// Rounded mean of two 10-bit values in uint16.
Expr average(const Expr &first, const Expr &second) {
    return (first + second + cast<uint16_t>(1)) >> 1;
}

// Rounded mean of four 10-bit values in uint16.
Expr average4(const Expr &first, const Expr &second, const Expr &third, const Expr &fourth) {
    return (first + second + third + fourth + cast<uint16_t>(2)) >> 2;
}

// The mean along the direction in which the two neighbours differ less.
Expr smoother(const Expr &left, const Expr &right, const Expr &up, const Expr &down) {
    return select(absd(left, right) < absd(up, down), average(left, right), average(up, down));
}

class CameraPipeline : public Generator<CameraPipeline> {
public:
    GeneratorParam<int> width{"width", 1920};
    GeneratorParam<int> height{"height", 1280};

    Input<Buffer<uint16_t, 2>> raw{"raw"};
    Input<Buffer<int16_t, 2>> matrix{"matrix"};
    Input<uint16_t> black_level{"black_level"};
    Input<uint16_t> gain_red{"gain_red"};
    Input<uint16_t> gain_blue{"gain_blue"};
    Input<uint16_t> tone{"tone"};
    Input<uint8_t> sharpness{"sharpness"};
    Output<Buffer<uint8_t, 3>> output{"output"};

    void generate() {
        Func mosaic = BoundaryConditions::mirror_interior(raw);
        Func red = plane("red", mosaic(2 * x, 2 * y), gain_red);
        Func green_r = plane("green_r", mosaic(2 * x + 1, 2 * y), cast<uint16_t>(256));
        Func green_b = plane("green_b", mosaic(2 * x, 2 * y + 1), cast<uint16_t>(256));
        Func blue = plane("blue", mosaic(2 * x + 1, 2 * y + 1), gain_blue);
        Func demosaiced = demosaic(red, green_r, green_b, blue);

        Func corrected("corrected");
        Expr mixed = cast<int>(128);  // half of the divisor 256, to round to nearest
        for (int channel = 0; channel < 3; channel++) {
            mixed += cast<int>(matrix(channel, c)) * cast<int>(demosaiced(x, y, channel));
        }
        corrected(x, y, c) = cast<uint16_t>(clamp(mixed >> 8, 0, white));

        Func curve("curve");
        Expr knee = max(cast<uint32_t>(tone), cast<uint32_t>(1));
        Expr value = cast<uint32_t>(v);
        curve(v) = cast<uint8_t>((255 * value * (knee + white) / (value + knee)) / white);
        Func toned("toned");
        toned(x, y, c) = curve(cast<int>(corrected(x, y, c)));

        Func rows("rows"), blurred("blurred");
        rows(x, y, c) = cast<int16_t>(toned(x - 1, y, c)) + 2 * cast<int16_t>(toned(x, y, c)) +
                        cast<int16_t>(toned(x + 1, y, c));
        blurred(x, y, c) =
            (rows(x, y - 1, c) + 2 * rows(x, y, c) + rows(x, y + 1, c) + cast<int16_t>(8)) >> 4;
        Expr centre = cast<int16_t>(toned(x, y, c));
        Expr strength = cast<int16_t>(min(sharpness, cast<uint8_t>(127)));  // 127 * 255 just fits 16 bits
        Expr sharpened = centre + (((centre - blurred(x, y, c)) * strength) >> 5);
        output(x, y, c) = cast<uint8_t>(clamp(sharpened, 0, 255));

        set_all_estimates();
        if (!using_autoscheduler()) {
            curve.compute_root();
            output.compute_root().parallel(y, 8).vectorize(x, 16);
            for (Func func : {toned, demosaiced, red, green_r, green_b, blue}) {
                func.compute_root().parallel(y, 8).vectorize(x, 16);
            }
        }
    }

private:
    Var x{"x"}, y{"y"}, c{"c"}, v{"v"};

    // One colour of the mosaic at half size, black level taken off and gain applied.
    Func plane(const std::string &name, const Expr &value, const Expr &gain) {
        Expr signal = max(value, black_level) - black_level;
        Func func(name);
        func(x, y) = cast<uint16_t>(min((cast<uint32_t>(signal) * cast<uint32_t>(gain)) >> 8, white));
        return func;
    }

    // All three colours at every pixel, from four half-size planes; green_r shares its rows with red.
    Func demosaic(Func red, Func green_r, Func green_b, Func blue) {
        Func green_at_red("green_at_red"), green_at_blue("green_at_blue");
        green_at_red(x, y) = smoother(green_r(x - 1, y), green_r(x, y), green_b(x, y - 1), green_b(x, y));
        green_at_blue(x, y) = smoother(green_b(x, y), green_b(x + 1, y), green_r(x, y), green_r(x, y + 1));

        Expr hx = x / 2, hy = y / 2;
        Expr reds = by_position(
            red(hx, hy), average(red(hx, hy), red(hx + 1, hy)), average(red(hx, hy), red(hx, hy + 1)),
            average4(red(hx, hy), red(hx + 1, hy), red(hx, hy + 1), red(hx + 1, hy + 1)));
        Expr greens =
            by_position(green_at_red(hx, hy), green_r(hx, hy), green_b(hx, hy), green_at_blue(hx, hy));
        Expr blues = by_position(
            average4(blue(hx - 1, hy - 1), blue(hx, hy - 1), blue(hx - 1, hy), blue(hx, hy)),
            average(blue(hx, hy - 1), blue(hx, hy)), average(blue(hx - 1, hy), blue(hx, hy)), blue(hx, hy));
        Func demosaiced("demosaiced");
        demosaiced(x, y, c) = mux(c, {reds, greens, blues});
        return demosaiced;
    }

    // The value for this pixel's place in the 2x2 mosaic.
    Expr by_position(const Expr &red, const Expr &green_r, const Expr &green_b, const Expr &blue) {
        Expr odd = x % 2 == 1;
        return select(y % 2 == 0, select(odd, green_r, red), select(odd, blue, green_b));
    }

    // Sizes and typical values of every argument.
    void set_all_estimates() {
        raw.set_estimates({{0, width}, {0, height}});
        matrix.set_estimates({{0, 3}, {0, 3}});
        black_level.set_estimate(32);
        gain_red.set_estimate(448);
        gain_blue.set_estimate(384);
        tone.set_estimate(400);
        sharpness.set_estimate(24);
        output.set_estimates({{0, width}, {0, height}, {0, 3}});
    }
};

}  // namespace

HALIDE_REGISTER_GENERATOR(CameraPipeline, camera_pipeline)
