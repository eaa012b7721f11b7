// Reductions that are taken apart by hand.
#include "Halide.h"

using namespace Halide;

class Factored : public Generator<Factored> {
public:
    Input<Buffer<uint8_t, 2>> input{"input"};
    Output<Buffer<uint32_t, 1>> rows{"rows"};
    Output<Buffer<uint32_t, 1>> histogram{"histogram"};
    Output<Buffer<uint8_t, 0>> brightest{"brightest"};

    void generate() {
        // A generator may run a pipeline of its own, and count nameless Funcs differently where it schedules.
        Func ones("ones");
        Var i;
        ones(i) = 1;
        const Buffer<int> made = ones.realize({1});
        if (!using_autoscheduler()) Func unused;

        Func nameless;
        Var x("x"), bin("bin"), u("u"), v("v"), w("w");
        RDom r(0, 64, 0, 128, "r"), s(0, 256, "s");
        RDom t(0, input.dim(0).extent(), 0, input.dim(1).extent(), "t");
        rows(x) = cast<uint32_t>(0);
        nameless(x) = cast<uint32_t>(made(0));
        rows(x) += cast<uint32_t>(input(s, x)) * nameless(x);
        histogram(bin) = cast<uint32_t>(0);
        histogram(cast<int>(input(r.x, r.y))) += cast<uint32_t>(1);
        brightest() = cast<uint8_t>(0);
        brightest() = max(brightest(), input(t.x, t.y));

        input.set_estimates({{0, 256}, {0, 128}});
        rows.set_estimates({{0, 128}});
        histogram.set_estimates({{0, 256}});

        if (!using_autoscheduler()) {
            RVar ro("ro"), ri("ri"), so("so"), si("si");
            nameless.compute_root();
            rows.bound(x, 0, 128).vectorize(x, 8);
            rows.update().split(s, so, si, 8);
            Func lanes = rows.update().rfactor(si, v);
            lanes.compute_root().vectorize(v, 8).update().reorder(v, x, so).vectorize(v, 8);
            rows.update().atomic().unroll(si);
            Func part = histogram.update().split(r.y, ro, ri, 16).rfactor({{ro, u}, {r.x, w}});
            part.in().compute_root();
            part.compute_at(part.in(), u).update().unroll(ri, 4);
            part.in().parallel(u);
            brightest.update().rfactor(t.y, w).compute_root().update().parallel(w);
        }
    }
};

HALIDE_REGISTER_GENERATOR(Factored, factored)
