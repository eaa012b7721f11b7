// For tests: a generator that the C++ compiler refuses.

#include "Halide.h"

namespace {

class CompileError : public Halide::Generator<CompileError> {
public:
    Input<Buffer<uint8_t, 2>> input{"input"};
    Output<Buffer<uint8_t, 2>> output{"output"};

    void generate() {
        output(x, y) = input(x, y);  // x and y are declared nowhere
    }
};

}  // namespace

HALIDE_REGISTER_GENERATOR(CompileError, compile_error)
