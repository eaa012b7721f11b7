// How the copies of an access lie that unrolling has made, or a stencil has: as a grid of few strides.

#ifndef HALIDE_SDK_COPIES
#define HALIDE_SDK_COPIES

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace halide_sdk {

// So many places, each so many elements after the one before.
struct Copies {
    double stride;
    int steps;
};

// Smaller gaps than this many of the smallest one do not begin a new row.
constexpr double largest_gap_of_a_row = 2;

// The grid of places: the closest ones are a row, and the first ones of the rows lie as the rest says.
//
// It is exact where they are a grid whose rows are far apart. Others count as the grid of the longest row.
inline std::vector<Copies> copies_at(std::vector<double> places) {
    std::vector<Copies> grid;
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    while (places.size() > 1) {
        double gap = places[1] - places[0];
        for (size_t i = 2; i < places.size(); i++) gap = std::min(gap, places[i] - places[i - 1]);
        std::vector<double> firsts;
        size_t longest = 0, begin = 0;
        double length = 0;
        for (size_t end = 1; end <= places.size(); end++) {
            const bool goes_on = end < places.size() && places[end] - places[end - 1] <= largest_gap_of_a_row * gap;
            if (goes_on) continue;
            firsts.push_back(places[begin]);
            if (end - begin > longest) {
                longest = end - begin;
                length = places[end - 1] - places[begin];
            }
            begin = end;
        }
        grid.push_back({std::round(length / static_cast<double>(longest - 1)), static_cast<int>(longest)});
        places = std::move(firsts);
    }
    return grid;
}

}  // namespace halide_sdk

#endif
