// Fills in the sizes that nobody gave: inputs from what the outputs need, outputs from what the inputs have.

#ifndef HALIDE_SDK_SIZE_INFERENCE
#define HALIDE_SDK_SIZE_INFERENCE

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "Halide.h"
#include "argument_facts.h"
#include "bounds_inference.h"

namespace halide_sdk_1 {

class SizeInference {
public:
    // `outputs[i]` are the arguments of the pipeline's output i, one for each element of its tuple.
    SizeInference(const Halide::Pipeline &pipeline, std::vector<ArgumentFacts> &inputs,
                  std::vector<std::vector<ArgumentFacts>> &outputs)
        : pipeline_(pipeline), regions_(pipeline), inputs_(inputs), outputs_(outputs) {}

    void fill() {
        for (auto &elements : outputs_) guess_output(elements);
        for (int pass = 0; pass < most_passes && fit_outputs(); pass++) {}
        for (int pass = 0; pass < most_passes && infer_inputs(); pass++) {}
        for (ArgumentFacts &input : inputs_) use_defaults(input);
        note_required();
    }

private:
    static constexpr int most_passes = 12;
    // Of a buffer of which some extents are guesses.
    static constexpr double most_elements = 1 << 24;
    // A larger ratio of two sizes is a pyramid's or a stride's factor, a smaller one a stencil's border.
    static constexpr double least_factor = 1.4;

    Halide::Pipeline pipeline_;
    RegionsRequired regions_;
    std::vector<ArgumentFacts> &inputs_;
    std::vector<std::vector<ArgumentFacts>> &outputs_;

    static int default_extent(size_t dimensions, size_t index) {
        static const int images[] = {1920, 1080, 3}, blocks[] = {64, 64, 32, 4};
        if (dimensions == 1) return 1 << 20;
        if (dimensions <= 3) return images[index];
        return index < 4 ? blocks[index] : 2;
    }

    static void use_defaults(ArgumentFacts &argument) {
        for (size_t i = 0; i < argument.dimensions.size(); i++) {
            if (!argument.dimensions[i].is_known()) {
                argument.dimensions[i].set(0, default_extent(argument.dimensions.size(), i), Source::Default);
            }
        }
        while (elements(argument) > most_elements && halve_a_default(argument)) {}
    }

    static double elements(const ArgumentFacts &argument) {
        double count = 1;
        for (const Dimension &dimension : argument.dimensions) count *= dimension.range.extent;
        return count;
    }

    // The last first: the others are the size of an image.
    static bool halve_a_default(ArgumentFacts &argument) {
        for (auto dimension = argument.dimensions.rbegin(); dimension != argument.dimensions.rend(); ++dimension) {
            if (dimension->source != Source::Default || dimension->range.extent < 2) continue;
            dimension->range.extent /= 2;
            return true;
        }
        return false;
    }

    // As large as the first input that has the dimension.
    void guess_output(std::vector<ArgumentFacts> &elements) {
        std::vector<Dimension> &dimensions = elements.front().dimensions;
        for (size_t i = 0; i < dimensions.size(); i++) {
            for (const ArgumentFacts &input : inputs_) {
                if (dimensions[i].is_known() || i >= input.dimensions.size()) continue;
                if (!input.dimensions[i].is_known()) continue;
                dimensions[i].set(input.dimensions[i].range.min, input.dimensions[i].range.extent, Source::Inferred);
            }
        }
        use_defaults(elements.front());
        for (ArgumentFacts &element : elements) element.dimensions = dimensions;
    }

    Values values() const {
        Values values;
        for (const ArgumentFacts &input : inputs_) {
            if (input.kind == "input_scalar") values[input.name] = scalar_value(input.type, input.value);
            for (size_t i = 0; i < input.dimensions.size(); i++) {
                if (!input.dimensions[i].is_known()) continue;
                const std::string index = std::to_string(i);
                values[input.name + ".min." + index] = input.dimensions[i].range.min;
                values[input.name + ".extent." + index] = input.dimensions[i].range.extent;
            }
        }
        for (size_t k = 0; k < outputs_.size(); k++) {
            const std::string name = pipeline_.outputs()[k].name();
            for (size_t i = 0; i < outputs_[k].front().dimensions.size(); i++) {
                const Range &range = outputs_[k].front().dimensions[i].range;
                values[name + ".min." + std::to_string(i)] = range.min;
                values[name + ".extent." + std::to_string(i)] = range.extent;
            }
        }
        return values;
    }

    std::map<std::string, Box> regions() const {
        std::map<std::string, Box> of_outputs;
        for (size_t k = 0; k < outputs_.size(); k++) {
            Box &box = of_outputs[pipeline_.outputs()[k].name()];
            for (const Dimension &dimension : outputs_[k].front().dimensions) {
                box.push_back(Interval(dimension.range.min, dimension.range.min + dimension.range.extent - 1));
            }
        }
        return regions_.of_inputs(of_outputs, values());
    }

    // Make outputs whose size is a guess as large as the inputs allow; whether one changed.
    bool fit_outputs() {
        bool changed = false;
        for (const auto &region : regions()) {
            const ArgumentFacts *input = find(region.first);
            for (size_t i = 0; input != nullptr && i < input->dimensions.size() && i < region.second.size(); i++) {
                const Dimension &dimension = input->dimensions[i];
                const auto required = constant_range(region.second[i]);
                if (!dimension.is_known() || !required) continue;
                for (auto &elements : outputs_) changed = fit(elements, i, dimension.range, *required) || changed;
            }
            if (changed) return true;
        }
        return false;
    }

    static bool fit(std::vector<ArgumentFacts> &elements, size_t index, const Range &has,
                    const std::pair<int64_t, int64_t> &required) {
        if (index >= elements.front().dimensions.size()) return false;
        Dimension &dimension = elements.front().dimensions[index];
        if (dimension.source != Source::Inferred && dimension.source != Source::Default) return false;
        const int64_t extent = dimension.range.extent;
        const double factor = static_cast<double>(required.second) / has.extent;
        int64_t fitting = extent;
        if (factor > least_factor || factor < 1 / least_factor) {
            fitting = std::max<int64_t>(1, static_cast<int64_t>(extent / factor));
        } else if (required.second > has.extent) {
            fitting = std::max<int64_t>(1, extent - (required.second - has.extent));
        }
        if (fitting == extent) return false;
        dimension.set(dimension.range.min, fitting, Source::Inferred);
        for (ArgumentFacts &element : elements) element.dimensions = elements.front().dimensions;
        return true;
    }

    ArgumentFacts *find(const std::string &name) {
        for (ArgumentFacts &input : inputs_) {
            if (input.name == name) return &input;
        }
        return nullptr;
    }

    // What the outputs need; where that depends on the input's own size, the size of the output. Whether one was found.
    bool infer_inputs() {
        bool found = false;
        const auto needed = regions();
        for (ArgumentFacts &input : inputs_) {
            const auto region = needed.find(input.name);
            for (size_t i = 0; i < input.dimensions.size(); i++) {
                Dimension &dimension = input.dimensions[i];
                if (dimension.is_known() || region == needed.end() || i >= region->second.size()) continue;
                if (const auto range = constant_range(region->second[i])) {
                    dimension.set(range->first, range->second, Source::Inferred);
                    found = true;
                }
            }
        }
        if (found) return true;
        for (ArgumentFacts &input : inputs_) {
            if (input.is_known()) continue;
            const std::vector<Dimension> &like = outputs_.front().front().dimensions;
            for (size_t i = 0; i < input.dimensions.size() && i < like.size(); i++) {
                Dimension &dimension = input.dimensions[i];
                if (dimension.is_known()) continue;
                dimension = like[i];
                if (dimension.source != Source::Default) dimension.source = Source::Inferred;
                found = true;
            }
            if (found) return true;
        }
        return false;
    }

    void note_required() {
        for (const auto &region : regions()) {
            ArgumentFacts *input = find(region.first);
            for (size_t i = 0; input != nullptr && i < input->dimensions.size() && i < region.second.size(); i++) {
                if (const auto range = constant_range(region.second[i])) {
                    input->dimensions[i].required =
                        Range{static_cast<int>(range->first), static_cast<int>(range->second)};
                }
            }
        }
    }
};

}  // namespace halide_sdk_1

#endif
