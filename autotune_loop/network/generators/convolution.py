"""A two-dimensional convolution in 32-bit floats, with what is done to its result: bias, addition, activation.

Pictures are rows of columns of channels (NHWC, one picture), the weights rows, columns, channels in, channels out, as
Keras has them; with `block` the channels out are taken apart, so that those of a block lie side by side for all of a
window: who builds the network packs them once.
"""

from __future__ import annotations

import halide as hl

x, y, c = hl.Var("x"), hl.Var("y"), hl.Var("c")


@hl.generator(name="convolution")
class Convolution(hl.Generator):
    rows = hl.GeneratorParam(56)
    columns = hl.GeneratorParam(56)
    channels_in = hl.GeneratorParam(64)
    channels_out = hl.GeneratorParam(64)
    kernel_rows = hl.GeneratorParam(3)
    kernel_columns = hl.GeneratorParam(3)
    stride_rows = hl.GeneratorParam(1)
    stride_columns = hl.GeneratorParam(1)
    dilation_rows = hl.GeneratorParam(1)
    dilation_columns = hl.GeneratorParam(1)
    pad_rows_before = hl.GeneratorParam(0)
    pad_rows_after = hl.GeneratorParam(0)
    pad_columns_before = hl.GeneratorParam(0)
    pad_columns_after = hl.GeneratorParam(0)
    groups = hl.GeneratorParam(1)
    has_bias = hl.GeneratorParam(True)
    # Something of the output's shape that is added before the activation.
    adds = hl.GeneratorParam(False)
    activation = hl.GeneratorParam("none")
    # Channels out that lie side by side in the weights; 0 for all of them.
    block = hl.GeneratorParam(0)

    input = hl.InputBuffer(hl.Float(32), 3)
    output = hl.OutputBuffer(hl.Float(32), 3)

    def configure(g) -> None:
        g.add_input("weights", hl.InputBuffer(hl.Float(32), 5 if int(g.block) else 4))
        if g.has_bias:
            g.add_input("bias", hl.InputBuffer(hl.Float(32), 1))
        if g.adds:
            g.add_input("added", hl.InputBuffer(hl.Float(32), 3))

    def generate(g) -> None:
        channels_in, channels_out, groups = int(g.channels_in), int(g.channels_out), int(g.groups)
        each_in, each_out = channels_in // groups, channels_out // groups
        kernel = (int(g.kernel_columns), int(g.kernel_rows))
        size_out = (
            _size_out(int(g.columns), kernel[0], int(g.stride_columns), int(g.dilation_columns), g.pad_columns),
            _size_out(int(g.rows), kernel[1], int(g.stride_rows), int(g.dilation_rows), g.pad_rows),
        )
        size_in = (channels_in, int(g.columns), int(g.rows))
        padded = g.input
        if any((*g.pad_columns, *g.pad_rows)):
            padded = hl.BoundaryConditions.constant_exterior(g.input, 0.0, [(0, extent) for extent in size_in])
        window = hl.RDom([(0, each_in), (0, kernel[0]), (0, kernel[1])])
        first = (c / each_out) * each_in if groups > 1 else 0
        place = (
            window.x + first,
            x * int(g.stride_columns) + window.y * int(g.dilation_columns) - g.pad_columns[0],
            y * int(g.stride_rows) + window.z * int(g.dilation_rows) - g.pad_rows[0],
        )
        block = int(g.block)
        of_window = (window.x, window.y, window.z)
        weight = g.weights[(c % block, *of_window, c / block)] if block else g.weights[(c, *of_window)]
        total = hl.Func("total")
        total[c, x, y] = g.bias[c] if g.has_bias else hl.f32(0)
        total[c, x, y] += weight * padded[place]
        value = total[c, x, y] + g.added[c, x, y] if g.adds else total[c, x, y]
        g.output[c, x, y] = _ACTIVATIONS[str(g.activation)](value)

        _fix(g.input, size_in)
        _fix(g.weights, (block or channels_out, each_in, *kernel, *([channels_out // block] if block else [])))
        if g.has_bias:
            _fix(g.bias, (channels_out,))
        if g.adds:
            _fix(g.added, (channels_out, *size_out))
        _fix(g.output.output_buffer(), (channels_out, *size_out))
        g.output.set_estimates([(0, extent) for extent in (channels_out, *size_out)])
        if not g.using_autoscheduler():
            total.compute_root()

    @property
    def pad_columns(g) -> tuple[int, int]:
        return int(g.pad_columns_before), int(g.pad_columns_after)

    @property
    def pad_rows(g) -> tuple[int, int]:
        return int(g.pad_rows_before), int(g.pad_rows_after)


def _size_out(size: int, kernel: int, stride: int, dilation: int, pad: tuple[int, int]) -> int:
    return (size + sum(pad) - dilation * (kernel - 1) - 1) // stride + 1


def _fix(buffer: hl.Buffer, shape: tuple[int, ...]) -> None:
    """Nothing of a network's shapes is left to be known when it runs."""
    stride = 1
    for place, extent in enumerate(shape):
        buffer.dim(place).set_bounds(0, extent)
        buffer.dim(place).set_stride(stride)
        stride *= extent
    buffer.set_estimates([(0, extent) for extent in shape])


_ACTIVATIONS = {
    "none": lambda value: value,
    "relu": lambda value: hl.max(value, 0.0),
    "relu6": lambda value: hl.clamp(value, 0.0, 6.0),
    "sigmoid": lambda value: 1.0 / (1.0 + hl.exp(-value)),
    "tanh": hl.tanh,
    "silu": lambda value: value / (1.0 + hl.exp(-value)),
}

if __name__ == "__main__":
    hl.main()
