// Stages of every kind that a pipeline's shape tells apart; `way` chooses the pipeline.

#include "Halide.h"

using namespace Halide;

class Shapes : public Generator<Shapes> {
public:
    GeneratorParam<std::string> way{"way", "stages"};
    Input<Buffer<uint8_t, 2>> input{"input"};
    Input<Buffer<int32_t, 1>> places{"places"};
    Input<int> count{"count"};
    Output<Buffer<float, 2>> output{"output"};

    void generate() {
        Var x("x"), y("y"), i("i");
        const std::string way = this->way;
        if (way == "stages") {
            // A stencil, half as large, and what reads it twice as large; a constant table; a read that data decide.
            Func blur("blur"), half("half"), table("table"), looked_up("looked_up");
            blur(x, y) = cast<uint16_t>(input(x - 1, y)) + input(x, y) + input(x + 2, y + 1);
            half(x, y) = cast<float>(blur(2 * x, 2 * y) + blur(2 * x + 1, 2 * y + 1));
            table(i) = cast<float>(places(i)) * 2.0f;
            looked_up(x, y) = table(clamp(cast<int>(blur(x, y)), 0, 255));
            output(x, y) = half(x / 2, y / 2) + half((x + 1) / 2, y / 2) + looked_up(y, x);
            output.bound(x, 0, 32);
        } else if (way == "updates") {
            // Iterations in any order, in an order that may be merged, and in an order that nothing can change.
            Func histogram("histogram"), total("total"), running("running"), pair("pair"), filled("filled");
            RDom r(0, 64, 0, 48, "r"), t(1, 31, "t"), d(0, count, "d"), f(0, 8, "f");
            histogram(i) = 0;
            histogram(clamp(cast<int>(input(r.x, r.y)), 0, 255)) += 1;
            total(x) = 0;
            total(x) += histogram(x) * places(d);
            running(x, y) = cast<float>(total(x) + input(x, y));
            running(x, t) = running(x, t) + 0.5f * running(x, t - 1);
            filled(x, y) = 0.0f;
            filled(x, f) = cast<float>(input(x, f));
            pair(x, y) = Tuple(running(x, y), cast<uint8_t>(x + y));
            output(x, y) = pair(x, y)[0] + cast<float>(pair(x, y)[1]) + filled(x, y);
        } else if (way == "cases") {
            // Values that a loop's number chooses between, and conditions that choose nothing by it.
            Func chosen("chosen"), compared("compared"), ranged("ranged"), other("other");
            chosen(x, y) = mux(y, {cast<int>(input(x, 0)), 7, count});
            compared(x, y) = select(x == 1, chosen(x, y), y == 2, places(x), 0);
            ranged(x, y) = select(x < 3, compared(x, y), places(x));
            other(x, y) = select(x == count, ranged(x, y), input(x, y) == 1, 0, y % 2 == 0, 1, 2);
            output(x, y) = cast<float>(other(x, y));
        } else if (way == "extern") {
            // A stage that is no Halide code, given a Func and an input.
            Func before("before"), foreign("foreign");
            before(x, y) = input(x, y) + input(y, x);
            foreign.define_extern("foreign", {before, static_cast<Func>(places)}, UInt(8), {x, y});
            output(x, y) = cast<float>(foreign(x, y));
        }
        input.set_estimates({{0, 64}, {0, 48}});
        count.set_estimate(9);
        places.set_estimates({{0, 256}});
        output.set_estimates({{0, 32}, {0, 32}});
    }
};

HALIDE_REGISTER_GENERATOR(Shapes, shapes)
