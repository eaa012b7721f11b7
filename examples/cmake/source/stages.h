#pragma once

#include "Halide.h"

// The average of each pixel and its neighbours in one direction; the pixel itself counts WEIGHT times.
Halide::Func averaged(const Halide::Func &image, const std::string &name, int dx, int dy);
