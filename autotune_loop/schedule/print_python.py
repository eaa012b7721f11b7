"""A schedule as a Python module, for generators that are written in Python."""

from __future__ import annotations

from collections.abc import Sequence

from halide_autotune.autotune_loop.schedule.calls import Call, call_of, print_call
from halide_autotune.autotune_loop.schedule.check import check_schedule
from halide_autotune.autotune_loop.schedule.directives import (
    Async,
    ComputeWith,
    Directive,
    NoProfiling,
    Reorder,
    ReorderStorage,
    RFactor,
    Split,
    Tile,
)
from halide_autotune.autotune_loop.schedule.model import (
    Accessor,
    ByIndex,
    ByName,
    Clone,
    DimensionList,
    Schedule,
    ScheduledFunc,
    StageSchedule,
    Variable,
    Wrapper,
    in_order,
)
from halide_autotune.autotune_loop.schedule.values import stage_name
from halide_autotune.targets.errors import GeneratorError

# Halide 21's Python has no get_schedule(), so the names come from the definitions: a stage's loops are its reduction
# variables, then the pure variables that are alone on its left side.
_LOOP_NAMES = '''\
def loop_names(func, update=None):
    """The names of a stage's loops before any scheduling, the innermost first."""
    args = [arg.name() for arg in func.args()]
    if update is None:
        return args
    left = [str(arg) for arg in func.update_args(update)]  # such as <halide.Expr of type int32: x>
    pure = [name for name, arg in zip(args, left) if arg.rstrip(">").rpartition(": ")[2] == name]
    return [rvar.name() for rvar in func.rvars(update)] + pure


'''
# An index with no Func ends the search with Halide's own error.
_FUNC_NAMED = '''\
def func_named(pipeline, name):
    """The Func of the pipeline that has this name."""
    index = 0
    while (func := pipeline.get_func(index)).name() != name:
        index += 1
    return func


'''


def print_python(
    schedule: Schedule, *, comment: Sequence[str] = (), before: str = "", checks: Sequence[str] = ()
) -> str:
    """A module with `apply_schedule(pipeline, target)`. Equal schedules give equal text.

    Call it at the end of an `@hl.generator`'s `generate` if no autoscheduler runs:
    `apply_schedule(hl.Pipeline([self.output]), self.target())`, with all outputs in the order of their declaration.

    Args:
        comment: lines for its docstring.
        before: Python code between the import of Halide and the functions.
        checks: statements at the start of the function, which then also takes `strict=False`.

    Raises:
        GeneratorError: the schedule is inconsistent, or has what Halide 21's Python cannot say.
    """
    check_schedule(schedule)
    lacking = python_lacks(schedule)
    if lacking is not None:
        raise GeneratorError(
            f"The schedule cannot be a Python module: it {lacking}, which Halide 21's Python lacks.",
            next_step="Use the C++ header, or a schedule without that.",
        )
    uses_dims = any(isinstance(variable.source, Accessor) for variable in schedule.variables)
    uses_names = any(isinstance(func.origin, ByName) for func in schedule.funcs)
    body: list[str] = []
    for item in in_order(schedule):
        match item:
            case ScheduledFunc():
                body.append(_func(item))
            case Variable():
                body.append(_variable(item))
            case StageSchedule():
                body += _stage(item)
    told = schedule.provenance
    origin = f", made by {told.autoscheduler} for {told.target}" if told else ""
    told_more = "".join(f"\n{line}" for line in ("", *comment, "")) if comment else ""
    strict = ", strict=False" if checks else ""
    return (
        f'"""The schedule of {schedule.function_name}{origin}. MACHINE GENERATED -- DO NOT EDIT.'
        f'{told_more}"""\n\n'
        f"import halide as hl\n\n{before}\n"
        + (_LOOP_NAMES if uses_dims else "")
        + (_FUNC_NAMED if uses_names else "")
        + f"def apply_schedule(pipeline, target{strict}):\n"
        + '    """Schedule every Func of the pipeline; `target` is as in Halide\'s C++ headers, and not looked at."""\n'
        + "".join(f"    {line}\n" for line in (*checks, *body))
    )


def python_lacks(schedule: Schedule) -> str | None:
    """What a schedule does that Halide 21's Python cannot do, as the end of a sentence; None if it can do all."""
    if schedule.parameters:
        return f"reaches the pipeline's {schedule.parameters[0].name!r}"
    if any(isinstance(directive, NoProfiling) for stage in schedule.stages for directive in stage.directives):
        return "calls no_profiling()"
    return None


def _func(func: ScheduledFunc) -> str:
    match func.origin:
        case ByIndex(index):
            made = f"pipeline.get_func({index})"
        case ByName(name):
            made = f'func_named(pipeline, "{name}")'
        case Wrapper(of, consumers):
            made = f"{of}.in_({_listed(consumers)})"
        case Clone(of, consumers):
            made = f"{of}.clone_in({_listed(consumers)})"
        case _:
            raise ValueError(func)
    return f"{func.identifier} = {made}"


def _listed(consumers: Sequence[str]) -> str:
    return ", ".join(consumers) if len(consumers) < 2 else f"[{', '.join(consumers)}]"


def _variable(variable: Variable) -> str:
    kind = "RVar" if variable.is_reduction else "Var"
    source = variable.source
    return f"{variable.identifier} = hl.{kind}({_accessor(source) if isinstance(source, Accessor) else repr(source)})"


def _accessor(source: Accessor) -> str:
    match source.dimensions:
        case DimensionList.ARGS:
            return f"{source.func}.args()[{source.position}].name()"
        case DimensionList.RVARS:
            return f"{source.func}.rvars({source.update})[{source.position}].name()"
        case DimensionList.DIMS:
            update = "" if source.update is None else f", {source.update}"
            return f"loop_names({source.func}{update})[{source.position}]"


def _stage(stage: StageSchedule) -> list[str]:
    start = stage_name(stage.func, stage.update)
    lines = []
    for directive in stage.directives:
        result = f"{directive.intermediate} = " if isinstance(directive, RFactor) else ""
        lines += [f"{result}{start}{call}" for call in _calls(directive)]
    return lines


def _calls(directive: Directive) -> list[str]:
    match directive:
        case RFactor(preserved):
            return [f".rfactor([{', '.join(f'({old}, {new})' for old, new in preserved)}])"]
        case Tile(previous, outers, inners, factors, tail):
            parts: list[Directive] = [
                Split(old, outer, inner, factor, tail)
                for old, outer, inner, factor in zip(previous, outers, inners, factors, strict=True)
            ]
            parts.append(Reorder((*inners, *outers)))
            return [call for part in parts for call in _calls(part)]
        case ComputeWith(stage, variable, alignments) if alignments:
            pairs = ", ".join(f"({name}, hl.LoopAlignStrategy.{align.value})" for name, align in alignments)
            return [f".compute_with({stage}, {variable}, [{pairs}])"]
        case Async():
            return [".async_()"]
    call = call_of(directive)
    # Halide 21's Python takes no list of Vars where C++ does.
    if isinstance(directive, Reorder | ReorderStorage):
        call = Call(call.method, directive.variables)
    return [print_call(call, scope="hl.", member=".")]
