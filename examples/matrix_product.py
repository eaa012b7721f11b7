"""Scaled product of two dense float32 matrices, product = scale * left @ right.

Matrices are (column, row), the column innermost: left is (depth, rows), right is (columns, depth), product is
(columns, rows).
"""

import halide as hl

column, row = hl.vars("column row")


@hl.generator(name="matrix_product")
class MatrixProduct(hl.Generator):
    rows = hl.GeneratorParam(512)
    columns = hl.GeneratorParam(512)
    depth = hl.GeneratorParam(512)

    left = hl.InputBuffer(hl.Float(32), 2)
    right = hl.InputBuffer(hl.Float(32), 2)
    scale = hl.InputScalar(hl.Float(32))
    product = hl.OutputBuffer(hl.Float(32), 2)

    def generate(self) -> None:
        total = hl.Func("total")
        r = hl.RDom([(0, self.depth)], "r")
        total[column, row] = 0.0
        total[column, row] += self.left[r.x, row] * self.right[column, r.x]
        self.product[column, row] = self.scale * total[column, row]

        self.left.set_estimates([(0, self.depth), (0, self.rows)])
        self.right.set_estimates([(0, self.columns), (0, self.depth)])
        self.scale.set_estimate(0.5)
        self.product.set_estimates([(0, self.columns), (0, self.rows)])

        if not self.using_autoscheduler():
            lanes = self.natural_vector_size(hl.Float(32))
            self.product.parallel(row).vectorize(column, lanes)
            total.compute_at(self.product, row).vectorize(column, lanes)
            total.update().reorder(column, r.x).vectorize(column, lanes)


if __name__ == "__main__":
    hl.main()
