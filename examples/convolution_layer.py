"""One layer of a convolutional network: 3x3 convolution, bias, rectifier; float32.

Channels are innermost: input is (channel, x, y, image) with a border of one pixel already in it, weights is
(output channel, x, y, input channel), bias is (output channel), output is (output channel, x, y, image).
"""

import halide as hl

c, x, y, n = hl.vars("c x y n")


@hl.generator(name="convolution_layer")
class ConvolutionLayer(hl.Generator):
    input_channels = hl.GeneratorParam(64)
    output_channels = hl.GeneratorParam(64)
    width = hl.GeneratorParam(56)
    height = hl.GeneratorParam(56)
    images = hl.GeneratorParam(1)

    input = hl.InputBuffer(hl.Float(32), 4)
    weights = hl.InputBuffer(hl.Float(32), 4)
    bias = hl.InputBuffer(hl.Float(32), 1)
    output = hl.OutputBuffer(hl.Float(32), 4)

    def generate(self) -> None:
        convolution = hl.Func("convolution")
        r = hl.RDom([(0, self.input_channels), (0, 3), (0, 3)], "r")
        convolution[c, x, y, n] = self.bias[c]
        convolution[c, x, y, n] += self.weights[c, r.y, r.z, r.x] * self.input[r.x, x + r.y, y + r.z, n]
        self.output[c, x, y, n] = hl.max(convolution[c, x, y, n], 0.0)

        plane = [(0, self.width), (0, self.height), (0, self.images)]
        bordered = [(0, self.width + 2), (0, self.height + 2), (0, self.images)]
        self.input.set_estimates([(0, self.input_channels), *bordered])
        self.weights.set_estimates([(0, self.output_channels), (0, 3), (0, 3), (0, self.input_channels)])
        self.bias.set_estimates([(0, self.output_channels)])
        self.output.set_estimates([(0, self.output_channels), *plane])

        if not self.using_autoscheduler():
            lanes = self.natural_vector_size(hl.Float(32))
            self.output.parallel(n).parallel(y).vectorize(c, lanes)
            convolution.compute_at(self.output, x).vectorize(c, lanes)
            convolution.update().reorder(c, r.x, r.y, r.z).vectorize(c, lanes)


if __name__ == "__main__":
    hl.main()
