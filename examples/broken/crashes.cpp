// For tests: a generator that dies of a segmentation fault while it runs.

#include <csignal>

#include "Halide.h"

namespace {

class Crashes : public Halide::Generator<Crashes> {
public:
    Output<Buffer<uint8_t, 2>> output{"output"};

    void generate() {
        std::raise(SIGSEGV);
    }
};

}  // namespace

HALIDE_REGISTER_GENERATOR(Crashes, crashes)
