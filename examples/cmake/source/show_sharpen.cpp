// Sharpens an image and prints a checksum of the result.

#include <cstdint>
#include <iostream>

#include "HalideBuffer.h"
#include "sharpen.h"

int main() {
    Halide::Runtime::Buffer<uint8_t, 2> input(1536, 1024), output(1536, 1024);
    input.for_each_element([&](int x, int y) { input(x, y) = (7 * x + 13 * y) % 251; });
    if (int error = sharpen(input, output)) {
        std::cerr << "sharpen failed with " << error << "\n";
        return 1;
    }
    uint64_t sum = 0;
    output.for_each_element([&](int x, int y) { sum += uint64_t(output(x, y)) * (x + 3 * y + 1); });
    std::cout << sum << "\n";
    return 0;
}
