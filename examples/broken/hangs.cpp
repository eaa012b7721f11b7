// For tests: a generator that never ends, and uses no processor time. Run it under a time limit.

#include <chrono>
#include <thread>

#include "Halide.h"

namespace {

class Hangs : public Halide::Generator<Hangs> {
public:
    Output<Buffer<uint8_t, 2>> output{"output"};

    void generate() {
        while (true) {
            std::this_thread::sleep_for(std::chrono::seconds(1));
        }
    }
};

}  // namespace

HALIDE_REGISTER_GENERATOR(Hangs, hangs)
