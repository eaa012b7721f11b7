// A generator of somebody's product. Its variants are what may happen to it after it was tuned.

#include "Halide.h"

#if __has_include("shipped/product.schedule.h")
#include "shipped/product.schedule.h"
#define IS_TUNED
#endif

namespace {

enum { AS_TUNED, RENAMED, CHANGED, LONGER, OTHER_DOMAIN, SWAPPED, OTHER_UNNAMED_NUMBERS };

class Product : public Halide::Generator<Product> {
public:
    GeneratorParam<int> variant{"variant", AS_TUNED};

    Input<Buffer<uint16_t, 2>> input{"input"};
    Output<Buffer<uint16_t, 2>> output{"output"};

    void generate() {
        Var x("x"), y("y");
        if (variant == OTHER_UNNAMED_NUMBERS) {
            Func unused, unused_too("across");
            Halide::RDom never(0, 7);
        }
        Func padded = Halide::BoundaryConditions::repeat_edge(input);
        Func across(variant == RENAMED ? "sideways" : "across");
        across(x, y) = padded(x - 1, y) + padded(x, y) * (variant == CHANGED ? 3 : 2);
        Func total("total"), half("part"), third("part"), nameless;
        Halide::RDom r(0, variant == OTHER_DOMAIN ? 5 : 3);
        total(x, y) = cast<uint16_t>(0);
        total(x, y) += across(x + r, y);
        half(x, y) = across(x, y) / (variant == SWAPPED ? 3 : 2);
        third(x, y) = across(x, y) / (variant == SWAPPED ? 2 : 3);
        nameless(x, y) = total(x, y) + half(x, y);
        Expr value = nameless(x, y) + third(x, y);
        if (variant == LONGER) {
            Func more("more");
            more(x, y) = across(x, y + 1);
            value += more(x, y);
        }
        output(x, y) = value;

        input.set_estimates({{0, 96}, {0, 64}});
        output.set_estimates({{0, 96}, {0, 64}});
        if (!using_autoscheduler()) {
#ifdef IS_TUNED
            if (!try_apply_schedule_product(get_pipeline(), get_target())) {
                apply_schedule_product(get_pipeline(), get_target());
            }
#endif
        }
    }
};

}  // namespace

HALIDE_REGISTER_GENERATOR(Product, product)
