// Blurs a small pattern and prints a sum of the result.

#include <cstdint>
#include <cstdio>

#include "HalideBuffer.h"
#include "blur.h"

int main() {
    Halide::Runtime::Buffer<uint16_t, 2> input(1536, 1024), output(1536, 1024);
    input.for_each_element([&](int x, int y) { input(x, y) = (7 * x + 13 * y) % 1021; });
    if (blur(input, output) != 0) return 1;
    uint64_t sum = 0;
    output.for_each_element([&](int x, int y) { sum += uint64_t(output(x, y)) * (x + 3 * y + 1); });
    std::printf("%llu\n", (unsigned long long)sum);
    return 0;
}
