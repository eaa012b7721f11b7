import halide as hl

x, y = hl.vars("x y")


@hl.generator(name="scan")
class Scan(hl.Generator):
    input = hl.InputBuffer(hl.Float(32), 2)
    output = hl.OutputBuffer(hl.Float(32), 2)

    def generate(self) -> None:
        state = hl.Func("state")
        r = hl.RDom([(1, 63), (1, 31)], "r")
        state[x, y] = self.input[x, y]
        state[r.x, r.y] = 0.5 * state[r.x - 1, r.y] + 0.5 * state[r.x, r.y - 1] * state[r.x - 1, r.y]
        rows = hl.Func("rows")
        t = hl.RDom([(1, 63)], "t")
        rows[x, y] = state[x, y] + state[x, y + 1]
        rows[t, y] = 0.5 * rows[t - 1, y] + rows[t, y]
        self.output[x, y] = rows[x, y] * 2.0
        self.input.set_estimates([(0, 64), (0, 64)])
        self.output.set_estimates([(0, 64), (0, 64)])
