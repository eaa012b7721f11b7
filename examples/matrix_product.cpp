// Scaled product of two dense float32 matrices, product = scale * left @ right.
//
// Matrices are (column, row), the column innermost: left is (depth, rows), right is (columns, depth),
// product is (columns, rows).

#include "Halide.h"

namespace {

class MatrixProduct : public Halide::Generator<MatrixProduct> {
public:
    GeneratorParam<int> rows{"rows", 512};
    GeneratorParam<int> columns{"columns", 512};
    GeneratorParam<int> depth{"depth", 512};

    Input<Buffer<float, 2>> left{"left"};
    Input<Buffer<float, 2>> right{"right"};
    Input<float> scale{"scale"};
    Output<Buffer<float, 2>> product{"product"};

    void generate() {
        Var column("column"), row("row");
        Func total("total");
        RDom r(0, depth, "r");
        total(column, row) = 0.0f;
        total(column, row) += left(r.x, row) * right(column, r.x);
        product(column, row) = scale * total(column, row);

        left.set_estimates({{0, depth}, {0, rows}});
        right.set_estimates({{0, columns}, {0, depth}});
        scale.set_estimate(0.5f);
        product.set_estimates({{0, columns}, {0, rows}});

        if (!using_autoscheduler()) {
            const int lanes = natural_vector_size<float>();
            product.parallel(row).vectorize(column, lanes);
            total.compute_at(product, row).vectorize(column, lanes);
            total.update().reorder(column, r.x).vectorize(column, lanes);
        }
    }
};

}  // namespace

HALIDE_REGISTER_GENERATOR(MatrixProduct, matrix_product)
