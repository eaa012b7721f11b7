"""A shipped schedule as a Python module, and the module that chooses among those of several targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from halide_autotune.autotune_loop.schedule.model import Schedule
from halide_autotune.autotune_loop.schedule.print_python import print_python, python_lacks
from halide_autotune.autotune_loop.shipping.files.func_table import FuncRow
from halide_autotune.autotune_loop.shipping.provenance import Fact, Provenance, provenance_comment
from halide_autotune.autotune_loop.shipping.ship_manifest import ShippedSchedule

PYTHON_CHECK = '''\
def normal_name(name, numbers):
    """Without the numbers by which Halide tells apart what has one name in one process."""
    first, *others = name.split("$")
    if re.fullmatch("[a-z][0-9]+", first):
        first = numbers.setdefault(first, f"{first[0]}#{len(numbers)}")
    elif re.fullmatch("lambda_[0-9]*", first):
        first = "lambda"
    return "$".join([first, *(part for part in others if not re.fullmatch("[0-9]*", part))])


def normal_names(text):
    """As normal_name, for all that are in a text."""
    numbers = {}

    def normal(found):
        return normal_name(found[0], numbers) if re.match("[A-Za-z_]", found[0]) else found[0]

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
        return "".join(str(value).partition(": ")[2][:-1] + "\\n" for value in expressions)

    if func.is_extern() or not func.defined():
        return hash_of("extern\\n")
    lines = "".join(arg.name() + "\\n" for arg in func.args()) + "=\\n" + text(func.values())
    for update in range(func.num_update_definitions()):
        lines += "update\\n" + text(func.update_args(update)) + "=\\n" + text(func.update_values(update))
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
    names = [normal_name(func.name(), {}).partition("#")[0] for func in funcs]
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


'''


_IMPORTS = "import importlib.metadata\nimport re\nimport warnings\n\n"


def print_python_module(schedule: Schedule, name: str, provenance: Provenance, funcs: Sequence[FuncRow]) -> str:
    """A module with `apply_schedule(pipeline, target, strict=False)`, which first checks that the pipeline has these
    Funcs. It needs Halide and no other file; constants have the provenance. A schedule that Halide's Python cannot make
    has a module, too: its function says so and raises.

    Raises:
        GeneratorError: the schedule is inconsistent.
    """
    rows = "".join(f'    ("{row.name}", 0x{row.definition:016X}),\n' for row in funcs)
    constants = "".join(f"{key.upper()} = {_literal(value)}\n" for key, value in provenance.items())
    checks = ["check_pipeline(pipeline, strict)"]
    lacking = python_lacks(schedule)
    if lacking is not None:
        sentence = f"The schedule {name} {lacking}, which Halide 21's Python lacks. Use its C++ header."
        schedule, checks = Schedule(name, (), (), ()), [*checks, f"raise RuntimeError({sentence!r})"]
    text = print_python(
        replace(schedule, provenance=None, function_name=name),
        comment=provenance_comment(provenance),
        before=(
            f'NAME = "{name}"\n{constants}'
            "# The Funcs in the order of Pipeline.get_func, with hashes of their definitions.\n"
            f"FUNCS = (\n{rows})\n\n\n{PYTHON_CHECK.rstrip()}\n\n"
        ),
        checks=checks,
    )
    return text.replace("import halide as hl\n", f"{_IMPORTS}import halide as hl\n", 1)


def _literal(value: Fact) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def print_python_dispatch(name: str, schedules: Sequence[ShippedSchedule]) -> str:
    """A module with `apply_schedule`, which applies the schedule that fits the target best or raises, and
    `try_apply_schedule`, which returns False if none fits. With a size that has schedules of its own they apply that of
    the target, where it has one.
    """
    general = [schedule for schedule in schedules if not schedule.for_size]
    modules = ", ".join(_module(schedule) for schedule in schedules)
    listed = ", ".join(schedule.dispatch_target for schedule in general)
    rows = "".join(
        f'    ("{one.dispatch_target}", {_module(one)}.apply_schedule, {{{_of_sizes(one, schedules)}}}),\n'
        for one in general
    )
    return (
        f'"""Schedules of {name} for {listed}. MACHINE GENERATED -- DO NOT EDIT."""\n\n'
        "import halide as hl\n\n"
        f"try:\n    from . import {modules}\nexcept ImportError:\n    import {modules}\n\n"
        f"SCHEDULES = (\n{rows})\n\n\n{_DISPATCH.replace('@NAME@', name)}"
    )


def _module(schedule: ShippedSchedule) -> str:
    return schedule.python_module.removesuffix(".py")


def _of_sizes(of_target: ShippedSchedule, schedules: Sequence[ShippedSchedule]) -> str:
    """The items of a dictionary: size → the schedule that a target has for it."""
    return ", ".join(
        f'"{one.for_size}": {_module(one)}.apply_schedule'
        for one in schedules
        if one.for_size and one.target_profile == of_target.target_profile
    )


_DISPATCH = '''\
def choose_schedule(target, size=""):
    """The function of the schedule that fits best, or None: of the architecture, with no feature that `target` lacks,
    best of its operating system, then with the most features. With a `size` such as "640x480" it is the target's
    schedule for that size, where it has one."""
    sizes = sorted({one for _, _, of_sizes in SCHEDULES for one in of_sizes})
    if size and size not in sizes:
        there = f"; there are some for {', '.join(sizes)}" if sizes else ", nor for any other single one"
        raise RuntimeError(f"There is no schedule of @NAME@ for the size {size}{there}.")
    best, best_score = None, -1
    for text, function, of_sizes in SCHEDULES:
        wanted = hl.Target(text)
        if (wanted.arch, wanted.bits) != (target.arch, target.bits):
            continue
        features = [f for f in hl.TargetFeature.__members__.values() if f != hl.TargetFeature.FeatureEnd]
        asked = [feature for feature in features if wanted.has_feature(feature)]
        score = (len(features) if wanted.os == target.os else 0) + len(asked)
        if score > best_score and all(target.has_feature(feature) for feature in asked):
            best, best_score = of_sizes.get(size, function), score
    return best


def try_apply_schedule(pipeline, target, strict=False, size=""):
    """Apply the schedule that fits `target` best. False, and nothing is done, where none does."""
    function = choose_schedule(target, size)
    if function is not None:
        function(pipeline, target, strict)
    return function is not None


def apply_schedule(pipeline, target, strict=False, size=""):
    """Apply the schedule that fits `target` best; with a `size` such as "640x480" its schedule for that, if it has one.

    Raises RuntimeError where none does, or where the pipeline is not the one it was made for; with `strict` also where
    a definition has changed.
    """
    if not try_apply_schedule(pipeline, target, strict, size):
        listed = ", ".join(text for text, _, _ in SCHEDULES)
        raise RuntimeError(
            f"There is no schedule of @NAME@ for {target.to_string()}; there are some for {listed}. Tune it for that "
            "target, or call try_apply_schedule and schedule it yourself where that returns False."
        )
'''
