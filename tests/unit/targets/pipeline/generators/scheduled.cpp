// Schedules itself although an autoscheduler runs, in the way that its parameter names.

#include "Halide.h"

using namespace Halide;

class Scheduled : public Generator<Scheduled> {
public:
    GeneratorParam<std::string> way{"way", "none"};
    Input<Buffer<float, 2>> input{"input"};
    Output<Buffer<float, 2>> output{"output"};

    void generate() {
        Var x("x"), y("y"), xi("xi"), yi("yi"), t("t"), u("u");
        RVar xo("xo"), xr("xr");
        Func blurred("blurred"), total("total"), best("best"), scaled("scaled"), doubled("doubled");
        RDom r(0, 3, 0, 3, "r"), row(0, 64, "row");
        blurred(x, y) = input(x, y) + input(x + 1, y);
        total(x, y) = 0.0f;
        total(x, y) += blurred(x + r.x, y + r.y);
        // Which of equal maxima is found depends on the order: its variable must not be reordered.
        best(y) = Tuple(0, -1.0f);
        best(y) = select(total(row, y) > best(y)[1], Tuple(row, total(row, y)), best(y));
        scaled(x, y) = total(x, y) / (best(y)[1] + best(y)[0]);
        doubled(x, y) = 2 * input(x, y);
        output(x, y) = scaled(x, y) + blurred(x, y) + doubled(x + 2, y);
        input.set_estimates({{0, 259}, {0, 131}});
        output.set_estimates({{0, 256}, {0, 128}});

        const std::string way = this->way;
        if (way == "loops") {
            output.compute_root().tile(x, y, xi, yi, 64, 8).fuse(x, y, t).parallel(t).vectorize(xi, 8).unroll(yi, 2);
            total.compute_at(output, t).store_at(output, t).vectorize(x, 8).update().reorder(r.x, r.y, x, y).unroll(r.x);
            best.compute_root().update().split(row, xo, xr, 16).split(y, y, yi, 4).vectorize(yi).partition(y, Partition::Never);
        } else if (way == "guarded" && !using_autoscheduler()) {
            output.compute_root().vectorize(x, 8);
        } else if (way == "storage") {
            blurred.compute_root().store_in(MemoryType::Heap).reorder_storage(y, x).align_storage(y, 32).bound(x, 0, 300);
            total.compute_at(output, y).store_root().fold_storage(y, 8).hoist_storage_root();
        } else if (way == "wrappers") {
            blurred.in(total).compute_root().vectorize(x, 4);
            input.in().compute_root();
        } else if (way == "clones") {
            blurred.clone_in(output).compute_at(output, y);
        } else if (way == "fused") {
            blurred.compute_root();
            doubled.compute_root().compute_with(blurred, y);
        } else if (way == "cases") {
            output.compute_root().specialize(output.width() >= 64).vectorize(x, 8);
            output.specialize_fail("narrow");
        } else if (way == "tasks") {
            blurred.compute_root().async().memoize();
            total.compute_root().update().prefetch(blurred, y, y, 2).atomic().allow_race_conditions();
        } else if (way == "factored") {
            total.compute_root().update().rfactor(r.y, u).compute_root();
        }
    }
};

HALIDE_REGISTER_GENERATOR(Scheduled, scheduled)
