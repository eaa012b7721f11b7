// Products of values of one sign and of both, of which RISC-V's vector code gets some wrong.

#include "Halide.h"

using namespace Halide;

class Products : public Generator<Products> {
public:
    Input<Buffer<uint8_t, 1>> input{"input"};
    Input<Buffer<int8_t, 1>> taps{"taps"};
    Output<Buffer<int32_t, 1>> output{"output"};

    void generate() {
        Var x("x");
        RDom r(0, 8, "r");
        const auto wide = [&](const Expr &at) { return cast<int16_t>(input(at)); };
        Func signed_sum("signed_sum"), unsigned_sum("unsigned_sum"), powers("powers"), both_signed("both_signed");
        Func wider("wider"), widened("widened"), wider_yet("wider_yet"), of_widened("of_widened"), of_both("of_both");
        Func total("total"), floats("floats"), chosen("chosen");
        signed_sum(x) = wide(x) * 3 - wide(x + 1) * 5;
        unsigned_sum(x) = cast<uint16_t>(input(x)) * 3 + input(x + 1);
        powers(x) = wide(x) * 4 - wide(x + 1);
        both_signed(x) = cast<int32_t>(taps(x)) * taps(x + 1);
        wider(x) = cast<int32_t>(input(x)) * 77;
        widened(x) = wide(x);
        wider_yet(x) = cast<int32_t>(widened(2 * x));
        of_widened(x) = widened(x) * 3 - widened(x + 1);
        of_both(x) = wider_yet(x) * 7;
        total(x) = 0;
        total(x) += cast<int32_t>(input(x + r)) * taps(r);
        floats(x) = cast<float>(input(x)) * 3.0f;
        chosen(x) = select(likely(x > 3), absd(input(x), input(x + 1)), cast<uint8_t>(abs(taps(x)) / 3));
        output(x) = signed_sum(x) + unsigned_sum(x) + powers(x) + both_signed(x) + wider(x) + of_widened(x) +
                    of_both(x) + total(x) + cast<int32_t>(floats(x)) + chosen(x);
        input.set_estimates({{0, 256}});
        taps.set_estimates({{0, 128}});
        output.set_estimates({{0, 64}});
    }
};

HALIDE_REGISTER_GENERATOR(Products, products)
