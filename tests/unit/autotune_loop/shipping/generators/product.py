"""The generator of product.cpp in Python."""

import halide as hl

try:
    from shipped import product_schedule  # type: ignore[import-not-found]  # a test ships it
except ImportError:
    product_schedule = None

x, y = hl.vars("x y")
AS_TUNED, RENAMED, CHANGED, LONGER, OTHER_DOMAIN, SWAPPED, OTHER_UNNAMED_NUMBERS = range(7)


@hl.generator(name="product")
class Product(hl.Generator):
    variant = hl.GeneratorParam(AS_TUNED)
    strict = hl.GeneratorParam(False)

    input = hl.InputBuffer(hl.UInt(16), 2)
    output = hl.OutputBuffer(hl.UInt(16), 2)

    def generate(self) -> None:
        if self.variant == OTHER_UNNAMED_NUMBERS:
            hl.Func(), hl.Func("across"), hl.RDom([(0, 7)])
        padded = hl.BoundaryConditions.repeat_edge(self.input)
        across = hl.Func("sideways" if self.variant == RENAMED else "across")
        across[x, y] = padded[x - 1, y] + padded[x, y] * (3 if self.variant == CHANGED else 2)
        total, half, third, nameless = hl.Func("total"), hl.Func("part"), hl.Func("part"), hl.Func()
        r = hl.RDom([(0, 5 if self.variant == OTHER_DOMAIN else 3)])
        total[x, y] = hl.u16(0)
        total[x, y] += across[x + r.x, y]
        half[x, y] = across[x, y] / (3 if self.variant == SWAPPED else 2)
        third[x, y] = across[x, y] / (2 if self.variant == SWAPPED else 3)
        nameless[x, y] = total[x, y] + half[x, y]
        value = nameless[x, y] + third[x, y]
        if self.variant == LONGER:
            more = hl.Func("more")
            more[x, y] = across[x, y + 1]
            value += more[x, y]
        self.output[x, y] = value

        self.input.set_estimates([(0, 96), (0, 64)])
        self.output.set_estimates([(0, 96), (0, 64)])
        if not self.using_autoscheduler() and product_schedule is not None:
            product_schedule.apply_schedule(hl.Pipeline([self.output]), self.target(), self.strict)


if __name__ == "__main__":
    hl.main()
