// For tests: generators that lack one estimate each, and one whose parameters have every type.

#include "Halide.h"
#include "no_estimates.h"

namespace {

const char input_name[] = "input", offset_name[] = "offset", output_name[] = "output";
using NoInput = OneEstimateShort<input_name>;
using NoOffset = OneEstimateShort<offset_name>;
using NoOutput = OneEstimateShort<output_name>;

class Typed : public Halide::Generator<Typed> {
public:
    GeneratorParam<bool> flag{"flag", true};
    GeneratorParam<float> ratio{"ratio", 1.5f};
    GeneratorParam<int> count{"count", 2, 0, 4};
    GeneratorParam<Kind> kind{"kind", Kind::One, {{"one", Kind::One}, {"two", Kind::Two}}};
    Output<Buffer<uint8_t, 1>> output{"output"};

    void generate() {
        Var x("x");
        output(x) = cast<uint8_t>(x);
        output.set_estimates({{0, 100}});
    }
};

}  // namespace

HALIDE_REGISTER_GENERATOR(NoInput, no_input)
HALIDE_REGISTER_GENERATOR(NoOffset, no_offset)
HALIDE_REGISTER_GENERATOR(NoOutput, no_output)
HALIDE_REGISTER_GENERATOR(Typed, typed)
