// A chain of 3x3 smoothing stencils on a 16-bit image, all in integers.
//
// input and output are (x, y), uint16. Edges are repeated before the first stage only, so each stage needs
// one more ring of the stage before it: the schedule decides between storing, recomputing and fusing the
// stages.

#include "Halide.h"

namespace {

class StencilChain : public Halide::Generator<StencilChain> {
public:
    GeneratorParam<int> width{"width", 1536};
    GeneratorParam<int> height{"height", 1024};
    GeneratorParam<int> stages{"stages", 8};

    Input<Buffer<uint16_t, 2>> input{"input"};
    Output<Buffer<uint16_t, 2>> output{"output"};

    void generate() {
        _halide_user_assert(stages >= 1)
            << "stencil_chain: stages is " << (int)stages << "; it must be 1 or more\n";
        Var x("x"), y("y");
        std::vector<Func> chain = {Halide::BoundaryConditions::repeat_edge(input)};
        for (int stage = 0; stage < stages; stage++) {
            Func before = chain.back();
            Expr total = cast<uint32_t>(8);  // half of the divisor 16, to round to nearest
            for (int dy = -1; dy <= 1; dy++) {
                for (int dx = -1; dx <= 1; dx++) {
                    const int weight = (2 - std::abs(dx)) * (2 - std::abs(dy));
                    total += cast<uint32_t>(weight) * cast<uint32_t>(before(x + dx, y + dy));
                }
            }
            Func smoothed("stage_" + std::to_string(stage));
            smoothed(x, y) = cast<uint16_t>(total >> 4);
            chain.push_back(smoothed);
        }
        output(x, y) = chain.back()(x, y);

        input.set_estimates({{0, width}, {0, height}});
        output.set_estimates({{0, width}, {0, height}});

        if (!using_autoscheduler()) {
            const int lanes = natural_vector_size<uint16_t>();
            for (size_t i = 1; i + 1 < chain.size(); i++) {
                chain[i].compute_root().parallel(y, 8).vectorize(x, lanes);
            }
            output.compute_root().parallel(y, 8).vectorize(x, lanes);
        }
    }
};

}  // namespace

HALIDE_REGISTER_GENERATOR(StencilChain, stencil_chain)
