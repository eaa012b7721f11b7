// Pipelines that show what a device can do at most: what its memory moves, and its arithmetic on 32-bit floats.
#include "Halide.h"

namespace {

using namespace Halide;

// Of a task: the sums that a core keeps in registers, enough to hide the latency of a multiplication with an addition.
constexpr int vectors = 10;
constexpr int factor_count = 256;

class CopyMemory : public Generator<CopyMemory> {
public:
    GeneratorParam<int> values{"values", 1 << 24};
    Input<Buffer<float, 1>> source{"source"};
    Output<Buffer<float, 1>> copied{"copied"};

    void generate() {
        Var x("x"), outer("outer");
        copied(x) = source(x) + 1.0f;
        source.set_estimates({{0, values}});
        copied.set_estimates({{0, values}});
        if (using_autoscheduler()) return;
        copied.split(x, outer, x, 1 << 16).parallel(outer).vectorize(x, natural_vector_size<float>());
    }
};

class MultiplyAndAdd : public Generator<MultiplyAndAdd> {
public:
    GeneratorParam<int> tasks{"tasks", 64};
    GeneratorParam<int> steps{"steps", 1 << 16};
    GeneratorParam<int> lanes{"lanes", 8};
    Input<Buffer<float, 1>> factors{"factors"};
    Output<Buffer<float, 1>> sums{"sums"};

    void generate() {
        Var x("x"), outer("outer");
        Func total("total");
        RDom step(0, steps);
        total(x) = 0.0f;
        total(x) = total(x) * 0.5f + factors(step % factor_count);
        sums(x) = total(x);
        const int width = vectors * lanes;
        factors.set_estimates({{0, factor_count}});
        sums.set_estimates({{0, tasks * width}});
        if (using_autoscheduler()) return;
        sums.bound(x, 0, tasks * width).split(x, outer, x, width).parallel(outer).vectorize(x, lanes);
        total.compute_at(sums, outer).bound_extent(x, width).vectorize(x, lanes).unroll(x);
        total.update().reorder(x, step).vectorize(x, lanes).unroll(x);
    }
};

}  // namespace

HALIDE_REGISTER_GENERATOR(CopyMemory, copy_memory)
HALIDE_REGISTER_GENERATOR(MultiplyAndAdd, multiply_and_add)
