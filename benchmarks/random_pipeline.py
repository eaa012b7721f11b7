"""Random programs to learn from, in the manner of Adams et al. 2019 (section 5): each seed is another pipeline.

A generator like any other: `sdk autotune benchmarks/random_pipeline.py --generator-arg-sets "seed=1 seed=2" …`. Stages
are drawn one after the other from what image pipelines are made of: arithmetic on one or two earlier stages, casts,
stencils in one and two dimensions, table look-ups, down- and upsampling, reductions over a window and over channels.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import halide as hl

x, y, c = hl.Var("x"), hl.Var("y"), hl.Var("c")
_TYPES = [hl.UInt(8), hl.UInt(16), hl.Int(32), hl.Float(32)]
_SMALLEST_SCALE = 3


@dataclass(frozen=True)
class Stage:
    """A Func of x, y, c; `scale` halvings of the output's size; its values' type."""

    func: hl.Func
    scale: int
    type: hl.Type


@hl.generator(name="random_pipeline")
class RandomPipeline(hl.Generator):
    seed = hl.GeneratorParam(0)
    stages = hl.GeneratorParam(12)
    width = hl.GeneratorParam(1024)
    height = hl.GeneratorParam(768)
    channels = hl.GeneratorParam(3)

    input = hl.InputBuffer(hl.UInt(8), 3)
    output = hl.OutputBuffer(hl.Float(32), 3)

    def generate(g) -> None:
        source = random.Random(int(g.seed))
        first = hl.Func("source")
        first[x, y, c] = hl.BoundaryConditions.repeat_edge(g.input)[x, y, c]
        made = [Stage(first, 0, hl.UInt(8))]
        for number in range(int(g.stages)):
            made.append(_next_stage(source, made, number, int(g.channels)))
        while made[-1].scale:
            made.append(_upsampled(made[-1], len(made)))
        last = made[-1]
        g.output[x, y, c] = hl.cast(hl.Float(32), last.func[x, y, c]) + 0.5

        for buffer in (g.input, g.output):
            buffer.set_estimates([(0, int(g.width)), (0, int(g.height)), (0, int(g.channels))])
        if not g.using_autoscheduler():
            for stage in made:
                stage.func.compute_root()


def _next_stage(source: random.Random, made: list[Stage], number: int, channels: int) -> Stage:
    """Mostly on top of the newest stage, so that pipelines are deep; sometimes an older one joins in."""
    newest = made[-1]
    older = [stage for stage in made[-6:-1] if stage.scale == newest.scale]
    kinds = ["pointwise", "stencil_x", "stencil_y", "stencil_xy", "table", "cast", "window", "channels"]
    if older:
        kinds += ["join"] * 3
    if newest.scale < _SMALLEST_SCALE:
        kinds.append("down")
    if newest.scale > 0:
        kinds.append("up")
    kind = source.choice(kinds)
    func = hl.Func(f"{kind}_{number}")
    if kind == "down":
        func[x, y, c] = _mean([newest.func[2 * x + i, 2 * y + j, c] for i in (0, 1) for j in (0, 1)], newest.type)
        return Stage(func, newest.scale + 1, newest.type)
    if kind == "up":
        return _upsampled(newest, number)
    if kind == "cast":
        wanted = source.choice([kind for kind in _TYPES if kind != newest.type])
        func[x, y, c] = hl.cast(wanted, newest.func[x, y, c])
        return Stage(func, newest.scale, wanted)
    value, kind_of_value = _value(source, kind, newest, source.choice(older) if older else newest, channels, func)
    if value is not None:
        func[x, y, c] = hl.cast(kind_of_value, value)
    return Stage(func, newest.scale, kind_of_value)


def _value(
    source: random.Random, kind: str, newest: Stage, other: Stage, channels: int, func: hl.Func
) -> tuple[hl.Expr | None, hl.Type]:
    """The definition of a stage; None where `func` has been defined already, by an update."""
    here = newest.func[x, y, c]
    if kind == "pointwise":
        return _pointwise(source, here), newest.type
    if kind == "join":
        there = hl.cast(newest.type, other.func[x, y, c])
        return source.choice([here + there, hl.max(here, there), hl.absd(here, there), here * there]), newest.type
    if kind in ("stencil_x", "stencil_y", "stencil_xy"):
        radius = source.randint(1, 3 if kind != "stencil_xy" else 1)
        across = range(-radius, radius + 1) if kind != "stencil_y" else (0,)
        along = range(-radius, radius + 1) if kind != "stencil_x" else (0,)
        return _mean([newest.func[x + i, y + j, c] for i in across for j in along], newest.type), newest.type
    if kind == "table":
        table = hl.Func(f"{func.name()}_table")
        table[x] = hl.cast(newest.type, x * source.randint(1, 7) % 251)
        return table[hl.clamp(hl.cast(hl.Int(32), here), 0, 255)], newest.type
    wide = hl.Float(32) if newest.type == hl.Float(32) else hl.Int(32)
    size = source.randint(2, 5) if kind == "window" else channels
    reach = hl.RDom([(0, size)])
    place = newest.func[x + reach.x, y, c] if kind == "window" else newest.func[x, y, reach.x]
    func[x, y, c] = hl.cast(wide, 0)
    func[x, y, c] += hl.cast(wide, place)
    return None, wide


def _pointwise(source: random.Random, here: hl.Expr) -> hl.Expr:
    number = source.randint(2, 9)
    return source.choice(
        [here * number + 1, hl.select(here > number, here - number, here), hl.max(here, number), here / number]
    )


def _mean(values: list[hl.Expr], kind: hl.Type) -> hl.Expr:
    wide = hl.Float(32) if kind == hl.Float(32) else hl.Int(32)
    total = hl.cast(wide, values[0])
    for value in values[1:]:
        total = total + hl.cast(wide, value)
    return hl.cast(kind, total / len(values))


def _upsampled(stage: Stage, number: int) -> Stage:
    func = hl.Func(f"up_{number}")
    func[x, y, c] = stage.func[x / 2, y / 2, c]
    return Stage(func, stage.scale - 1, stage.type)


if __name__ == "__main__":
    hl.main()
