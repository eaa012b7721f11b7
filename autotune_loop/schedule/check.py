"""Whether a `Schedule` is consistent, and nothing in it can break out of the text it is printed into."""

from __future__ import annotations

import keyword
import re
from collections.abc import Container

from autotune_loop.schedule.directives import (
    OF_FUNC_ONLY,
    OF_UPDATE_ONLY,
    OUTERMOST,
    ROOT,
    BoundExtent,
    ComputeAt,
    Directive,
    GpuBlocks,
    GpuThreads,
    Parallel,
    Reorder,
    ReorderStorage,
    RFactor,
    Split,
    StoreAt,
    Tile,
    variables_of,
)
from autotune_loop.schedule.model import (
    ByIndex,
    ByName,
    DimensionList,
    Intermediate,
    Schedule,
    ScheduledFunc,
    StageSchedule,
    Variable,
    Wrapper,
    stage_name,
)
from targets.errors import GeneratorError

CPP_KEYWORDS = frozenset(
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class "
    "co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype "
    "default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int "
    "long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register "
    "reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch "
    "template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile "
    "wchar_t while xor xor_eq".split()
)
# Names that the printed functions use.
_OUR_OWN = frozenset(
    "Func Halide MemoryType RVar TailStrategy Var apply_schedule check_pipeline func_named get_pipeline halide_sdk_1 "
    "hl loop_names pipeline std strict target".split()
)
_RESERVED = CPP_KEYWORDS | _OUR_OWN | frozenset(keyword.kwlist)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_identifier(text: str) -> bool:
    """Whether C++ and Python take `text` as an identifier."""
    return _IDENTIFIER.fullmatch(text) is not None and text not in _RESERVED


def make_identifier(text: str, taken: Container[str]) -> str:
    """`text` if it is an identifier, else the nearest one that is not taken."""
    made = re.sub(r"[^A-Za-z0-9_]", "_", text)
    if not made or made[0].isdigit():
        made = "_" + made
    while made in _RESERVED or made in taken:
        made += "_"
    return made


# A C name, or one in namespaces.
_FUNCTION_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:::[A-Za-z_][A-Za-z0-9_]*)*")
_HALIDE_NAME = re.compile(r"[A-Za-z0-9_$.]+")
_MAXIMUM_GPU_DIMENSIONS = 3
_MAXIMUM_NUMBER = 2**31 - 1
# One line of a comment; a backslash at its end would continue it.
_COMMENT = re.compile(r"[^\x00-\x1f\x7f\x85\u2028\u2029\\]*")


def check_schedule(schedule: Schedule) -> None:
    """Check that every name is declared once and that all text can be printed.

    Raises:
        GeneratorError: with the first fault.
    """
    if not _FUNCTION_NAME.fullmatch(schedule.function_name):
        raise _broken(f"{schedule.function_name!r} is not a function name")
    funcs = [func.identifier for func in schedule.funcs]
    variables = [variable.identifier for variable in schedule.variables]
    known: set[str] = set()
    for identifier in (*funcs, *variables):
        if not is_identifier(identifier):
            raise _broken(f"{identifier!r} is not an identifier in C++ and Python")
        if identifier in known:
            raise _broken(f"{identifier!r} is declared twice")
        known.add(identifier)
    reached: set[str] = set()
    for func in schedule.funcs:
        _check_func(func, reached)
        if not isinstance(func.origin, Intermediate):
            reached.add(func.identifier)
    for variable in schedule.variables:
        _check_source(variable, reached)
    _check_stages(schedule, reached, set(variables) | {OUTERMOST})
    _check_provenance(schedule)


def _check_func(func: ScheduledFunc, reached: set[str]) -> None:
    match func.origin:
        case ByIndex(index) if index < 0:
            raise _broken(f"the index of Func {func.identifier} is {index}")
        case ByName(name) if not _HALIDE_NAME.fullmatch(name):
            raise _broken(f"{name!r} is not a Func name")
        case Wrapper(of, consumer) if not {of, consumer} <= reached:
            raise _broken(f"Func {func.identifier} wraps a Func that is not declared before it")


def _check_source(variable: Variable, reached: set[str]) -> None:
    source = variable.source
    if isinstance(source, str):
        if not _HALIDE_NAME.fullmatch(source):
            raise _broken(f"{source!r} is not a variable name")
        return
    in_update = source.update is not None
    if source.dimensions is DimensionList.RVARS and not in_update:
        raise _broken(f"variable {variable.identifier} is a reduction variable without an update")
    if source.dimensions is DimensionList.ARGS and in_update:
        raise _broken(f"variable {variable.identifier} is an argument of an update")
    if source.func not in reached or source.position < 0 or (source.update or 0) < 0:
        place = f"{stage_name(source.func, source.update)}.{source.dimensions.value}[{source.position}]"
        raise _broken(f"variable {variable.identifier} comes from a place that does not exist: {place}")


def _check_stages(schedule: Schedule, reached: set[str], variables: set[str]) -> None:
    all_funcs = {func.identifier for func in schedule.funcs}
    intermediates = all_funcs - reached
    for stage in schedule.stages:
        if stage.func not in reached:
            raise _broken(f"Func {stage.func} is scheduled before it is declared")
        if stage.update is not None and stage.update < 0:
            raise _broken(f"{stage.func} has no update {stage.update}")
        if not stage.directives:
            raise _broken(f"{stage.func} has a stage without directives")
        _check_directives(stage, variables, all_funcs)
        last = stage.directives[-1]
        if isinstance(last, RFactor):
            if last.intermediate not in intermediates or last.intermediate in reached:
                raise _broken(f"the rfactor of {stage.func} makes {last.intermediate!r}, which is not a new Func")
            reached = reached | {last.intermediate}
    if all_funcs != reached:
        raise _broken(f"no rfactor makes Func {min(all_funcs - reached)}")


def _check_directives(stage: StageSchedule, variables: set[str], funcs: set[str]) -> None:
    for place, directive in enumerate(stage.directives):
        what = f"{type(directive).__name__} of {stage.func}"
        for name in variables_of(directive):
            if name not in variables or (name == OUTERMOST and not isinstance(directive, Reorder)):
                raise _broken(f"{what} names {name!r}, which is not a variable")
        if isinstance(directive, ComputeAt | StoreAt):
            level = directive.level
            if level != ROOT and (level.func not in funcs or level.variable not in variables):
                raise _broken(f"{what} is at {level.func}, {level.variable}, which is not a loop")
        if not _fits(directive):
            raise _broken(f"{what} has the wrong number of variables, or a number out of range")
        if isinstance(directive, OF_FUNC_ONLY) and stage.update is not None:
            raise _broken(f"{what} is applied to an update")
        if isinstance(directive, OF_UPDATE_ONLY) and (stage.update is None or place + 1 < len(stage.directives)):
            raise _broken(f"{what} must be the last directive of an update")


def _fits(directive: Directive) -> bool:
    match directive:
        case Tile(previous, outers, inners, factors):
            same = 0 < len(previous) == len(outers) == len(inners) == len(factors)
            return same and all(1 <= factor <= _MAXIMUM_NUMBER for factor in factors)
        case Split(factor=number) | BoundExtent(extent=number) | Parallel(task_size=int(number)):
            return 1 <= number <= _MAXIMUM_NUMBER
        case GpuBlocks(variables) | GpuThreads(variables):
            return 1 <= len(variables) <= _MAXIMUM_GPU_DIMENSIONS
        case Reorder(items) | ReorderStorage(items) | RFactor(items):
            return len(items) > 0
        case _:
            return True


def _check_provenance(schedule: Schedule) -> None:
    told = schedule.provenance
    if told is None:
        return
    texts = [told.autoscheduler, told.target, *(text for pair in told.parameters for text in pair)]
    for text in texts:
        if not _COMMENT.fullmatch(text):
            raise _broken(f"{text!r} cannot be written in a comment")


def _broken(what: str) -> GeneratorError:
    return GeneratorError(
        f"The schedule is invalid: {what}.", next_step="Use a header that the SDK or Halide 21 wrote."
    )
