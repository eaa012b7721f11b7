// Softens a small and a large pattern and prints a sum of each result.

#include <cstdint>
#include <cstdio>

#include "HalideBuffer.h"
#include "soften.h"

int main() {
    const int sizes[][2] = {{96, 64}, {1920, 1080}, {333, 222}};
    for (const auto &size : sizes) {
        Halide::Runtime::Buffer<uint8_t, 2> input(size[0], size[1]), output(size[0], size[1]);
        input.for_each_element([&](int x, int y) { input(x, y) = uint8_t((7 * x + 13 * y) % 251); });
        if (soften(input, output) != 0) return 1;
        uint64_t sum = 0;
        output.for_each_element([&](int x, int y) { sum += uint64_t(output(x, y)) * (x + 3 * y + 1); });
        std::printf("%dx%d: %llu\n", size[0], size[1], (unsigned long long)sum);
    }
    return 0;
}
