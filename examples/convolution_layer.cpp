// One layer of a convolutional network: 3x3 convolution, bias, rectifier; float32.
//
// Channels are innermost: input is (channel, x, y, image) with a border of one pixel already in it,
// weights is (output channel, x, y, input channel), bias is (output channel), output is (output channel,
// x, y, image).

#include "Halide.h"

namespace {

class ConvolutionLayer : public Halide::Generator<ConvolutionLayer> {
public:
    GeneratorParam<int> input_channels{"input_channels", 64};
    GeneratorParam<int> output_channels{"output_channels", 64};
    GeneratorParam<int> width{"width", 56};
    GeneratorParam<int> height{"height", 56};
    GeneratorParam<int> images{"images", 1};

    Input<Buffer<float, 4>> input{"input"};
    Input<Buffer<float, 4>> weights{"weights"};
    Input<Buffer<float, 1>> bias{"bias"};
    Output<Buffer<float, 4>> output{"output"};

    void generate() {
        Var c("c"), x("x"), y("y"), n("n");
        Func convolution("convolution");
        RDom r(0, input_channels, 0, 3, 0, 3, "r");
        convolution(c, x, y, n) = bias(c);
        convolution(c, x, y, n) += weights(c, r.y, r.z, r.x) * input(r.x, x + r.y, y + r.z, n);
        output(c, x, y, n) = max(convolution(c, x, y, n), 0.0f);

        input.set_estimates({{0, input_channels}, {0, width + 2}, {0, height + 2}, {0, images}});
        weights.set_estimates({{0, output_channels}, {0, 3}, {0, 3}, {0, input_channels}});
        bias.set_estimates({{0, output_channels}});
        output.set_estimates({{0, output_channels}, {0, width}, {0, height}, {0, images}});

        if (!using_autoscheduler()) {
            const int lanes = natural_vector_size<float>();
            output.parallel(n).parallel(y).vectorize(c, lanes);
            convolution.compute_at(output, x).vectorize(c, lanes);
            convolution.update().reorder(c, r.x, r.y, r.z).vectorize(c, lanes);
        }
    }
};

}  // namespace

HALIDE_REGISTER_GENERATOR(ConvolutionLayer, convolution_layer)
