// For tests: see no_estimates.cpp.
enum class Kind { One, Two };

template<const char *missing>
class OneEstimateShort : public Halide::Generator<OneEstimateShort<missing>> {
public:
    Halide::GeneratorInput<Halide::Buffer<uint8_t, 2>> input{"input"};
    Halide::GeneratorInput<uint8_t> offset{"offset"};
    Halide::GeneratorOutput<Halide::Buffer<uint8_t, 2>> output{"output"};

    void generate() {
        Halide::Var x("x"), y("y");
        Halide::Func doubled("doubled");
        doubled(x, y) = input(x, y) + offset;
        output(x, y) = doubled(x, y) + doubled(x + 1, y);
        if (std::string(missing) != "input") input.set_estimates({{0, 101}, {0, 100}});
        if (std::string(missing) != "offset") offset.set_estimate(3);
        if (std::string(missing) != "output") output.set_estimates({{0, 100}, {0, 100}});
    }
};
