#include "stages.h"

using Halide::cast;
using Halide::Func;
using Halide::Var;

Func averaged(const Func &image, const std::string &name, int dx, int dy) {
    Var x("x"), y("y");
    Func result(name);
    result(x, y) = (image(x - dx, y - dy) + WEIGHT * image(x, y) + image(x + dx, y + dy)) / (2 + WEIGHT);
    return result;
}
