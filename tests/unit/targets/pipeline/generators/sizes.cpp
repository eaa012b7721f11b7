// Gives no estimates; one pipeline for each way in which sizes follow from each other.

#include "Halide.h"

using namespace Halide;

class Sizes : public Generator<Sizes> {
public:
    GeneratorParam<std::string> way{"way", "stencil"};
    Input<Buffer<float, 2>> input{"input"};
    Input<float> gain{"gain"};
    Input<int> radius{"radius", 2, 1, 8};
    Output<Func> output{"output", Float(32), 2};

    void generate() {
        Var x("x"), y("y");
        Func made("made");
        const std::string way = this->way;
        if (way == "stencil") {
            made(x, y) = (input(x - 1, y) + input(x + 2, y + 1)) * gain * radius;
        } else if (way == "bordered") {
            Func bordered = BoundaryConditions::repeat_edge(input);
            made(x, y) = (bordered(x - 1, y) + bordered(x + radius, y)) * gain;
        } else if (way == "halved") {
            made(x, y) = (input(2 * x, 2 * y) + input(2 * x + 1, 2 * y + 1)) * gain * radius;
        } else if (way == "summed") {
            RDom row(0, input.width());
            made(x, y) = 0.0f;
            made(x, y) += input(row, y) * gain * radius;
        }
        // The Func is called otherwise than the output.
        output = made;
    }
};

HALIDE_REGISTER_GENERATOR(Sizes, sizes)
