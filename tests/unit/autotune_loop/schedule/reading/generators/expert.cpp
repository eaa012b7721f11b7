// A pipeline that is scheduled by hand with most of what Halide has for processors.
#include "Halide.h"

using namespace Halide;

class Expert : public Generator<Expert> {
public:
    Input<Buffer<uint8_t, 2>> input{"input"};
    Input<int> radius{"radius"};
    Output<Buffer<uint16_t, 2>> output{"output"};
    Output<Buffer<uint32_t, 1>> histogram{"histogram"};

    void generate() {
        Var x("x"), y("y"), nameless;
        Func wide("wide"), rows("rows"), columns("columns"), twice("twice"), table("table");
        Func padded = BoundaryConditions::repeat_edge(input);
        wide(x, y) = cast<uint16_t>(padded(x, y));
        table(nameless) = cast<uint16_t>(nameless * 2);
        rows(x, y) = wide(x - 1, y) + wide(x, y) + wide(x + 1, y);
        twice(x, y) = wide(x, y) * 2;
        columns(x, y) = rows(x, y - 1) + rows(x, y) + rows(x, y + 1) + twice(x, y);
        output(x, y) = columns(x, y) + table(cast<int>(input(x, y))) + cast<uint16_t>(radius) + rows(x, y);

        RDom r(0, 64, 0, 64);
        Var bin("bin");
        histogram(bin) = cast<uint32_t>(0);
        histogram(cast<int>(input(r.x, r.y))) += cast<uint32_t>(1);

        input.set_estimates({{0, 256}, {0, 128}});
        output.set_estimates({{0, 256}, {0, 128}});
        histogram.set_estimates({{0, 256}});
        radius.set_estimate(3);

        if (!using_autoscheduler()) {
            Var xo("xo"), xi, yo("yo"), yi("yi"), tile("tile"), fast("fast");
            RVar ro("ro"), ri("ri");
            columns.compute_root().specialize(input.dim(0).stride() == 1 && radius > 2).unroll(y, 2);
            columns.specialize(!(min(radius, 3) == 1)).specialize(radius == 2).vectorize(x, 4);
            columns.specialize_fail("The radius is not supported.");
            output.bound(x, 0, (output.dim(0).extent() / 32) * 32);
            output.align_bounds(y, 2);
            output.tile(x, y, xo, yo, xi, yi, 32, 8, TailStrategy::GuardWithIf)
                .fuse(xo, yo, tile)
                .parallel(tile)
                .vectorize(xi, 8)
                .partition(yi, Partition::Never);
            table.compute_root().bound(nameless, 0, 256).vectorize(nameless, 16).store_in(MemoryType::Stack);
            rows.clone_in(output).compute_at(output, yi).vectorize(x, 8);
            rows.store_root().compute_at(columns, y).hoist_storage_root().fold_storage(y, 4);
            rows.rename(x, fast).vectorize(fast, 8);
            rows.prefetch(input, y, y, 2, PrefetchBoundStrategy::NonFaulting);
            wide.in(twice).align_storage(x, 32);
            twice.compute_root().reorder(y, x).reorder_storage(y, x).parallel(x, 4);
            wide.in(twice).compute_root().compute_with(wide.in(), y, {{y, LoopAlignStrategy::AlignStart}});
            wide.in().compute_root();
            histogram.update().split(r.y, ro, ri, 8).reorder(ri, r.x, ro).atomic().parallel(ro);
        }
    }
};

HALIDE_REGISTER_GENERATOR(Expert, expert)
