// Generators with arguments of every kind, one for each.
#include "Halide.h"

using Halide::BoundaryConditions::repeat_edge;

// A function of two values, as two buffers of one output.
struct TupleOutput : Halide::Generator<TupleOutput> {
    Input<Buffer<uint8_t, 2>> input{"input"};
    Output<Func> sums{"sums", {UInt(16), Float(32)}, 2};
    void generate() {
        Var x("x"), y("y");
        Func in = repeat_edge(input);
        Halide::Expr sum = Halide::cast<uint16_t>(in(x, y)) + in(x + 1, y);
        sums(x, y) = Halide::Tuple(sum, Halide::cast<float>(sum) / 2);
        input.set_estimates({{0, 256}, {0, 128}});
        sums.set_estimates({{0, 256}, {0, 128}});
    }
};
HALIDE_REGISTER_GENERATOR(TupleOutput, tuple_output)

// Outputs of unlike shape and type, of one stage each.
struct UnlikeOutputs : Halide::Generator<UnlikeOutputs> {
    Input<Buffer<uint8_t, 2>> input{"input"};
    Output<Buffer<uint16_t, 2>> smooth{"smooth"};
    Output<Buffer<uint32_t, 1>> columns{"columns"};
    Output<Buffer<float, 3>> stack{"stack"};
    void generate() {
        Var x("x"), y("y"), c("c");
        Func in = repeat_edge(input);
        smooth(x, y) = Halide::cast<uint16_t>(in(x, y)) + in(x + 1, y);
        Halide::RDom r(0, 128);
        columns(x) = Halide::cast<uint32_t>(0);
        columns(x) += Halide::cast<uint32_t>(smooth(x, r));
        stack(x, y, c) = Halide::cast<float>(smooth(x, y)) * (c + 1);
        input.set_estimates({{0, 256}, {0, 128}});
        smooth.set_estimates({{0, 256}, {0, 128}});
        columns.set_estimates({{0, 256}});
        stack.set_estimates({{0, 256}, {0, 128}, {0, 3}});
    }
};
HALIDE_REGISTER_GENERATOR(UnlikeOutputs, unlike_outputs)

// Its types and dimensions are parameters: -p input.type=uint8 -p input.dim=3.
struct AnyType : Halide::Generator<AnyType> {
    Input<Buffer<>> input{"input"};
    Output<Buffer<>> output{"output"};
    void generate() {
        std::vector<Var> at;
        for (int d = 0; d < input.dimensions(); d++) at.emplace_back("v" + std::to_string(d));
        std::vector<Halide::Expr> left(at.begin(), at.end()), right(at.begin(), at.end());
        right[0] = right[0] + 1;
        Func in = repeat_edge(input), mean("mean");
        mean(at) = Halide::cast(output.type(), in(left) / 2 + in(right) / 2);
        output(at) = mean(at);
        Halide::Region sizes;
        const int extents[] = {256, 128, 3, 2};
        for (int d = 0; d < input.dimensions(); d++) sizes.push_back({0, extents[d]});
        input.set_estimates(sizes);
        output.set_estimates(sizes);
    }
};
HALIDE_REGISTER_GENERATOR(AnyType, any_type)

struct Arrays : Halide::Generator<Arrays> {
    Input<Buffer<float, 2>[3]> frames{"frames"};
    Input<float[2]> weights{"weights"};
    Output<Buffer<float, 2>[2]> mixed{"mixed"};
    void generate() {
        Var x("x"), y("y");
        mixed[0](x, y) = frames[0](x, y) * weights[0] + frames[1](x, y) * weights[1];
        mixed[1](x, y) = Halide::max(frames[1](x, y), frames[2](x, y));
        for (int i = 0; i < 3; i++) frames[i].set_estimates({{0, 256}, {0, 128}});
        for (int i = 0; i < 2; i++) {
            weights.set_estimate(i, 0.5f);
            mixed[i].set_estimates({{0, 256}, {0, 128}});
        }
    }
};
HALIDE_REGISTER_GENERATOR(Arrays, arrays)

struct Funcs : Halide::Generator<Funcs> {
    Input<Func> input{"input", UInt(8), 2};
    Output<Func> output{"output", UInt(16), 2};
    void generate() {
        Var x("x"), y("y");
        Func across("across");
        across(x, y) = Halide::cast<uint16_t>(input(x, y)) + input(x + 1, y);
        output(x, y) = across(x, y) + across(x, y + 1);
        input.set_estimates({{0, 257}, {0, 129}});
        output.set_estimates({{0, 256}, {0, 128}});
    }
};
HALIDE_REGISTER_GENERATOR(Funcs, funcs)

struct Scalars : Halide::Generator<Scalars> {
    Input<Buffer<uint8_t, 2>> input{"input"};
    Input<bool> inverts{"inverts", true};
    Input<uint64_t> mask{"mask"};
    Input<double> gain{"gain"};
    Input<int8_t> offset{"offset", -3, -10, 10};
    Output<Buffer<float, 2>> output{"output"};
    void generate() {
        Var x("x"), y("y");
        Halide::Expr masked = Halide::cast<uint64_t>(input(x, y)) & mask;
        Halide::Expr value = Halide::cast<float>(masked) * Halide::cast<float>(gain) + offset;
        output(x, y) = Halide::select(inverts, -value, value);
        input.set_estimates({{0, 256}, {0, 128}});
        output.set_estimates({{0, 256}, {0, 128}});
        mask.set_estimate(255);
        gain.set_estimate(2.0);
        inverts.set_estimate(true);
        offset.set_estimate(-3);
    }
};
HALIDE_REGISTER_GENERATOR(Scalars, scalars)

// Images as files and cameras have them: the channels of a pixel lie beside each other.
struct Interleaved : Halide::Generator<Interleaved> {
    Input<Buffer<uint8_t, 3>> input{"input"};
    Output<Buffer<uint8_t, 3>> output{"output"};
    void generate() {
        Var x("x"), y("y"), c("c");
        Func in = repeat_edge(input), blurred("blurred");
        blurred(x, y, c) = Halide::cast<uint8_t>((Halide::cast<uint16_t>(in(x, y, c)) + in(x + 1, y, c)) / 2);
        output(x, y, c) = blurred(x, y, c) / 2 + blurred(x, y + 1, c) / 2;
        input.dim(0).set_stride(3);
        input.dim(2).set_stride(1);
        input.dim(2).set_bounds(0, 3);
        output.dim(0).set_stride(3);
        output.dim(2).set_stride(1);
        output.dim(2).set_bounds(0, 3);
        input.set_estimates({{0, 256}, {0, 128}, {0, 3}});
        output.set_estimates({{0, 256}, {0, 128}, {0, 3}});
    }
};
HALIDE_REGISTER_GENERATOR(Interleaved, interleaved)

struct OddTypes : Halide::Generator<OddTypes> {
    Input<Buffer<bool, 2>> mask{"mask"};
    Input<Buffer<Halide::float16_t, 2>> half{"half"};
    Input<Buffer<uint64_t, 2>> wide{"wide"};
    Output<Buffer<bool, 2>> chosen{"chosen"};
    Output<Buffer<Halide::float16_t, 2>> halved{"halved"};
    Output<Buffer<uint64_t, 2>> sum{"sum"};
    void generate() {
        Var x("x"), y("y");
        chosen(x, y) = mask(x, y) && half(x, y) > Halide::cast<Halide::float16_t>(0.5f);
        halved(x, y) = Halide::cast<Halide::float16_t>(Halide::cast<float>(half(x, y)) / 2);
        sum(x, y) = wide(x, y) + wide(x, y) / 3;
        mask.set_estimates({{0, 256}, {0, 128}});
        half.set_estimates({{0, 256}, {0, 128}});
        wide.set_estimates({{0, 256}, {0, 128}});
        chosen.set_estimates({{0, 256}, {0, 128}});
        halved.set_estimates({{0, 256}, {0, 128}});
        sum.set_estimates({{0, 256}, {0, 128}});
    }
};
HALIDE_REGISTER_GENERATOR(OddTypes, odd_types)

// A boundary by hand, with clamp, and one with select; a total without dimensions.
struct ByHand : Halide::Generator<ByHand> {
    Input<Buffer<uint8_t, 2>> input{"input"};
    Output<Buffer<uint8_t, 2>> output{"output"};
    Output<Buffer<uint32_t, 0>> total{"total"};
    void generate() {
        Var x("x"), y("y");
        Halide::Expr w = input.width(), h = input.height();
        Func clamped("clamped"), zeros("zeros");
        clamped(x, y) = input(Halide::clamp(x, 0, w - 1), Halide::clamp(y, 0, h - 1));
        zeros(x, y) = Halide::select(x < 0 || x >= w || y < 0 || y >= h, Halide::cast<uint8_t>(0), clamped(x, y));
        output(x, y) = zeros(x - 1, y) / 4 + clamped(x, y) / 2 + zeros(x, y + 1) / 4;
        Halide::RDom r(0, 256, 0, 128);
        total() = Halide::cast<uint32_t>(0);
        total() += Halide::cast<uint32_t>(output(r.x, r.y));
        input.set_estimates({{0, 256}, {0, 128}});
        output.set_estimates({{0, 256}, {0, 128}});
        total.set_estimates({});
    }
};
HALIDE_REGISTER_GENERATOR(ByHand, by_hand)
