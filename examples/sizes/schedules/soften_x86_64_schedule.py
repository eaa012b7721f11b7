"""The schedule of soften_x86_64. MACHINE GENERATED -- DO NOT EDIT.

generator     soften, parameters: none
algorithm     66577e400f382729
target        x86-64: x86-64-linux-avx-avx2-f16c-fma-sse41
made with     Halide 21.0.0, Adams2019, SDK 0.1.0
device        the machine that tuned it, 2 threads, 4e500cb3534a453a
time          0.05348 ms +- 0.00086, play-off median of 8, geometric mean of 2 sizes; processes took 0.0509 to 0.06773 ms, wall time
sizes         0.003243 ms at input=96x64 output=96x64; 0.8805 ms at input=1920x1080 output=1920x1080
default       0.1273 ms +- 0.014, in turns with it
play-off      faster: 1.479 times as fast as your own schedule (95 % interval 1.081 to 1.526)
samples       223 timed
weights       6320e6982cdce58f5de4211ab7d7d58ebee25ba9109fcb8320eee4de2264b3b3
date          2026-11-23
"""

import importlib.metadata
import re
import warnings

import halide as hl

NAME = "soften_x86_64"
GENERATOR = "soften"
PARAMETERS = ""
TARGET_PROFILE = "x86-64"
HALIDE_TARGET = "x86-64-linux-avx-avx2-f16c-fma-sse41"
HALIDE_VERSION = "21.0.0"
AUTOSCHEDULER = "Adams2019"
ALGORITHM_HASH = "66577e400f382729"
DEVICE = "the machine that tuned it, 2 threads"
DEVICE_FINGERPRINT = "4e500cb3534a453a"
CLOCK = "wall"
DEFAULT_MS = 0.127323
DEFAULT_SPREAD_MS = 0.0136126
TUNED_MS = 0.0534798
TUNED_SPREAD_MS = 0.00085871
TUNED_LOW_MS = 0.0508972
TUNED_HIGH_MS = 0.067733
TUNED_FROM = "play-off median of 8, geometric mean of 2 sizes"
SPEED_UP = 1.47869
SPEED_UP_LOW = 1.08066
SPEED_UP_HIGH = 1.52588
CONFIRMED = True
VERDICT = "faster: 1.479 times as fast as your own schedule (95 % interval 1.081 to 1.526)"
SAMPLES = 223
DATE = "2026-11-23"
SDK_VERSION = "0.1.0"
WEIGHTS_SHA256 = "6320e6982cdce58f5de4211ab7d7d58ebee25ba9109fcb8320eee4de2264b3b3"
SIZES = "0.003243 ms at input=96x64 output=96x64; 0.8805 ms at input=1920x1080 output=1920x1080"
# The Funcs in the order of Pipeline.get_func, with hashes of their definitions.
FUNCS = (
    ("input_im", 0xFEDB154E282C4BE8),
    ("lambda", 0x9DC85863093C31E9),
    ("repeat_edge", 0xF5FBA2B695C476AA),
    ("down", 0xF4A51CC7310E8E34),
    ("across", 0xD91CE97D0D325692),
    ("mixed", 0xC8117551CE806001),
    ("output", 0x11CD7E29FC134750),
)


def normal_names(text):
    """Without the numbers by which Halide tells apart what has one name in one process."""
    numbers = {}

    def normal(found):
        if not re.match("[A-Za-z_]", found[0]):
            return found[0]
        first, *others = found[0].split("$")
        if re.fullmatch("[a-z][0-9]+", first):
            first = numbers.setdefault(first, f"{first[0]}#{len(numbers)}")
        elif re.fullmatch("lambda_[0-9]+", first):
            first = "lambda"
        return "$".join([first, *(part for part in others if part and not part.isdigit())])

    return re.sub("[A-Za-z_][A-Za-z0-9_$]*|[0-9][A-Za-z0-9_]*", normal, text)


def hash_of(text):
    """FNV-1a, never 0."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value or 1


def definition_of(func):
    """A hash of what a Func computes. What its reductions run over is not in it: Halide's Python does not tell that."""

    def text(expressions):
        # str gives "<halide.Expr of type uint8: ...>".
        return "".join(str(value).partition(": ")[2][:-1] + "\n" for value in expressions)

    if func.is_extern() or not func.defined():
        return hash_of("extern\n")
    lines = "".join(arg.name() + "\n" for arg in func.args()) + "=\n" + text(func.values())
    for update in range(func.num_update_definitions()):
        lines += "update\n" + text(func.update_args(update)) + "=\n" + text(func.update_values(update))
    return hash_of(normal_names(lines))


def all_funcs(pipeline):
    """The Funcs in the order of their indices."""
    funcs = []
    while True:
        try:
            funcs.append(pipeline.get_func(len(funcs)))
        except (hl.HalideError, RuntimeError, IndexError):
            return funcs


def check_pipeline(pipeline, strict):
    """Raise RuntimeError where the Funcs are not those that the schedule was made for; warn where only their
    definitions or Halide itself have changed. With `strict` a changed definition raises, too."""
    funcs = all_funcs(pipeline)
    names = [normal_names(func.name()).partition("#")[0] for func in funcs]
    for index in range(max(len(names), len(FUNCS))):
        now = repr(names[index]) if index < len(names) else "missing"
        was = repr(FUNCS[index][0]) if index < len(FUNCS) else "not there"
        if now != was:
            counts = "" if len(names) == len(FUNCS) else f"; there are {len(names)} Funcs, were {len(FUNCS)}"
            raise RuntimeError(
                f"The schedule {NAME} was made for another pipeline: Func {index} is now {now}, was {was}{counts}. "
                "Tune again, or give the Func its old name."
            )
    version = importlib.metadata.version("halide")
    if version != HALIDE_VERSION:
        warnings.warn(
            f"The schedule {NAME} was made with Halide {HALIDE_VERSION}, and this is Halide {version}: time it again.",
            stacklevel=3,
        )
    # Another version may print expressions in another way.
    if version.partition(".")[0] == HALIDE_VERSION.partition(".")[0]:
        check_definitions(funcs, names, strict)


def check_definitions(funcs, names, strict):
    """Raise RuntimeError where Funcs have changed places; warn, or raise if `strict`, where definitions have."""
    rows = [definition_of(func) if row[1] else 0 for func, row in zip(funcs, FUNCS)]
    changed = [index for index, row in enumerate(FUNCS) if rows[index] != row[1]]
    for index in changed:
        for other in changed:
            if index != other and rows[index] == FUNCS[other][1]:
                raise RuntimeError(
                    f"The schedule {NAME} was made for another pipeline: Func {index} {names[index]!r} is defined as "
                    f"Func {other} {FUNCS[other][0]!r} was: their order has changed. Tune again."
                )
    if changed:
        named = ", ".join(f"Func {index} {names[index]!r}" for index in changed)
        verb = "is" if len(changed) == 1 else "are"
        message = (
            f"The algorithm has changed since the schedule {NAME} was made: {named} {verb} defined differently. "
            "Tune again."
        )
        if strict:
            raise RuntimeError(message)
        warnings.warn(message, stacklevel=4)


def loop_names(func, update=None):
    """The names of a stage's loops before any scheduling, the innermost first."""
    args = [arg.name() for arg in func.args()]
    if update is None:
        return args
    pure = [name for name, arg in zip(args, func.update_args(update)) if str(arg) == name]
    return [rvar.name() for rvar in func.rvars(update)] + pure


def apply_schedule(pipeline, target, strict=False):
    """Schedule every Func of the pipeline; `target` is as in Halide's C++ headers, and not looked at."""
    check_pipeline(pipeline, strict)
    output = pipeline.get_func(6)
    mixed = pipeline.get_func(5)
    across = pipeline.get_func(4)
    down = pipeline.get_func(3)
    repeat_edge = pipeline.get_func(2)
    lambda_0 = pipeline.get_func(1)
    _0 = hl.Var(loop_names(repeat_edge)[0])
    _0i = hl.Var('_0i')
    _1 = hl.Var(loop_names(repeat_edge)[1])
    x = hl.Var(loop_names(output)[0])
    xi = hl.Var('xi')
    y = hl.Var(loop_names(output)[1])
    yi = hl.Var('yi')
    yii = hl.Var('yii')
    yiii = hl.Var('yiii')
    output.split(y, y, yi, 32, hl.TailStrategy.ShiftInwards)
    output.split(yi, yi, yii, 8, hl.TailStrategy.ShiftInwards)
    output.split(yii, yii, yiii, 2, hl.TailStrategy.ShiftInwards)
    output.split(x, x, xi, 32, hl.TailStrategy.ShiftInwards)
    output.unroll(yiii)
    output.vectorize(xi)
    output.compute_root()
    output.reorder(xi, yiii, x, yii, yi, y)
    output.parallel(y)
    mixed.store_in(hl.MemoryType.Stack)
    mixed.split(x, x, xi, 32, hl.TailStrategy.RoundUp)
    mixed.unroll(y)
    mixed.vectorize(xi)
    mixed.compute_at(output, x)
    mixed.reorder(xi, x, y)
    across.store_in(hl.MemoryType.Stack)
    across.split(x, x, xi, 16, hl.TailStrategy.RoundUp)
    across.unroll(x)
    across.unroll(y)
    across.vectorize(xi)
    across.compute_at(output, x)
    across.reorder(xi, x, y)
    down.store_in(hl.MemoryType.Stack)
    down.split(x, x, xi, 32, hl.TailStrategy.RoundUp)
    down.vectorize(xi)
    down.compute_at(output, yii)
    down.store_at(output, yi)
    down.reorder(xi, x, y)
    repeat_edge.store_in(hl.MemoryType.Stack)
    repeat_edge.split(_0, _0, _0i, 32, hl.TailStrategy.ShiftInwards)
    repeat_edge.vectorize(_0i)
    repeat_edge.compute_at(output, yi)
    repeat_edge.store_at(output, y)
    repeat_edge.reorder(_0i, _0, _1)
