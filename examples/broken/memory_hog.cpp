// For tests: a generator that takes memory without end. Run it under a memory limit.

#include "Halide.h"

namespace {

const size_t step_bytes = 32 * 1024 * 1024;

class MemoryHog : public Halide::Generator<MemoryHog> {
public:
    Output<Buffer<uint8_t, 2>> output{"output"};

    void generate() {
        std::vector<std::vector<char>> hoard;
        while (true) {
            hoard.emplace_back(step_bytes, 1);  // written, so that the memory is really taken
        }
    }
};

}  // namespace

HALIDE_REGISTER_GENERATOR(MemoryHog, memory_hog)
