"""Whether a `Schedule` is consistent, and nothing in it can break out of the text it is printed into."""

from __future__ import annotations

import keyword
import re
from collections.abc import Container
from dataclasses import fields

from halide_autotune.autotune_loop.schedule.calls import MAXIMUM_GPU_DIMENSIONS
from halide_autotune.autotune_loop.schedule.directives import (
    ComputeAt,
    ComputeWith,
    Directive,
    GpuBlocks,
    GpuThreads,
    Hexagon,
    HoistStorage,
    OfFunc,
    OfUpdate,
    PartitionLoop,
    Prefetch,
    Reorder,
    ReorderStorage,
    RFactor,
    SpecializeFail,
    StoreAt,
    Tile,
    expressions_of,
    parameters_of,
    variables_of,
)
from halide_autotune.autotune_loop.schedule.model import (
    ByIndex,
    ByName,
    Clone,
    DimensionList,
    Intermediate,
    Parameter,
    Schedule,
    ScheduledFunc,
    StageSchedule,
    Variable,
    in_order,
)
from halide_autotune.autotune_loop.schedule.values import (
    BINARY_OPERATORS,
    FUNCTIONS,
    OUTERMOST,
    ROOT,
    Expression,
    stage_name,
)
from halide_autotune.targets.errors import GeneratorError

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
    "DeviceAPI Expr Func Halide LoopAlignStrategy MemoryType Parameter Partition PrefetchBoundStrategy RVar "
    "TailStrategy Var apply_schedule check_pipeline func_named get_pipeline halide_sdk_1 hl loop_names max min "
    "parameter_named pipeline select std strict target value_named".split()
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
# Whatever a generator calls a Func or a loop, if strings of C++, Python and JSON take it as it is.
HALIDE_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f\"\\\u2028\u2029]+")
_MAXIMUM_NUMBER = 2**31 - 1
# What a message may have: nothing that ends it, in C++ or in Python.
_MESSAGE = re.compile(r"[ !#-\[\]-~]+")
_FIELD = re.compile(r"value|buffer|(?:min|extent|stride)\.[0-9]{1,2}")
# One line of a comment; a backslash at its end would continue it.
_COMMENT = re.compile(r"[^\x00-\x1f\x7f\x85\u2028\u2029\\]*")


def check_schedule(schedule: Schedule) -> None:
    """Check that every name is declared once and that all text can be printed.

    Raises:
        GeneratorError: with the first fault.
    """
    if not _FUNCTION_NAME.fullmatch(schedule.function_name):
        raise _broken(f"{schedule.function_name!r} is not a function name")
    declared: tuple[ScheduledFunc | Parameter | Variable, ...]
    declared = (*schedule.funcs, *schedule.parameters, *schedule.variables)
    known: set[str] = set()
    for identifier in (item.identifier for item in declared):
        if not is_identifier(identifier):
            raise _broken(f"{identifier!r} is not an identifier in C++ and Python")
        if identifier in known:
            raise _broken(f"{identifier!r} is declared twice")
        known.add(identifier)
    _Checker(schedule).check()
    _check_provenance(schedule)


class _Checker:
    """Goes through a schedule in the order in which it is applied."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._funcs = {func.identifier for func in schedule.funcs}
        self._intermediates = {func.identifier for func in schedule.funcs if isinstance(func.origin, Intermediate)}
        self._variables = {variable.identifier for variable in schedule.variables} | {OUTERMOST}
        self._parameters = {parameter.identifier: parameter for parameter in schedule.parameters}
        self._reached: set[str] = set()

    def check(self) -> None:
        for item in in_order(self._schedule):
            match item:
                case ScheduledFunc(identifier):
                    _check_origin(item)
                    self._reached.add(identifier)
                case Parameter():
                    _check_parameter(item)
                case Variable():
                    _check_source(item, self._reached)
                case StageSchedule():
                    self._check_stage(item)
        if self._funcs != self._reached:
            missing = min(self._funcs - self._reached)
            if missing in self._intermediates:
                raise _broken(f"no rfactor makes Func {missing}")
            raise _broken(f"Func {missing} wraps a Func that is not declared before it")

    def _check_stage(self, stage: StageSchedule) -> None:
        if stage.func not in self._reached:
            raise _broken(f"Func {stage.func} is scheduled before it is declared")
        if stage.update is not None and stage.update < 0:
            raise _broken(f"{stage.func} has no update {stage.update}")
        if not stage.directives and not stage.conditions:
            raise _broken(f"{stage.func} has a stage without directives")
        for condition in stage.conditions:
            self._check_expression(condition, f"a specialization of {stage.func}")
        for place, directive in enumerate(stage.directives):
            self._check_directive(directive, stage, is_last=place + 1 == len(stage.directives))

    def _check_directive(self, directive: Directive, stage: StageSchedule, *, is_last: bool) -> None:
        what = f"{type(directive).__name__} of {stage.func}"
        for name in variables_of(directive):
            of_all = isinstance(directive, Reorder | PartitionLoop | Hexagon | GpuBlocks | GpuThreads | Prefetch)
            if name not in self._variables or (name == OUTERMOST and not of_all):
                raise _broken(f"{what} names {name!r}, which is not a variable")
        for expression in expressions_of(directive):
            self._check_expression(expression, what)
        self._check_others(directive, what)
        if not _fits(directive):
            raise _broken(f"{what} has the wrong number of variables, or a number out of range")
        if isinstance(directive, OfFunc) and (stage.update is not None or stage.conditions):
            raise _broken(f"{what} is applied to an update or a specialization")
        if isinstance(directive, OfUpdate) and (stage.update is None or stage.conditions or not is_last):
            raise _broken(f"{what} must be the last directive of an update")
        if isinstance(directive, SpecializeFail) and not is_last:
            raise _broken(f"{what} must be the last directive")
        if isinstance(directive, RFactor):
            made = directive.intermediate
            if made not in self._intermediates or made in self._reached:
                raise _broken(f"the rfactor of {stage.func} makes {made!r}, which is not a new Func")
            self._reached.add(made)

    def _check_others(self, directive: Directive, what: str) -> None:
        """Check what a directive names of other stages."""
        match directive:
            case ComputeAt(level) | StoreAt(level) | HoistStorage(level):
                if level != ROOT and (level.func not in self._funcs or level.variable not in self._variables):
                    raise _broken(f"{what} is at {level.func}, {level.variable}, which is not a loop")
            case ComputeWith(other, variable, alignments):
                variables = {variable, *(name for name, _ in alignments)}
                if other.func not in self._reached or (other.update or 0) < 0 or not variables <= self._variables:
                    raise _broken(f"{what} is with {other}, {variable}, which is not a loop")
            case SpecializeFail(message) if not _MESSAGE.fullmatch(message.text):
                raise _broken(f"{what} has the message {message.text!r}, which cannot be written in C++ and Python")
            case Prefetch(source):
                parameter = self._parameters.get(source.identifier)
                if source.identifier not in self._reached and (parameter is None or parameter.field != "buffer"):
                    raise _broken(f"{what} is from {source.identifier!r}, which is not a Func or an input")

    def _check_expression(self, expression: Expression, what: str) -> None:
        for identifier in parameters_of(expression):
            parameter = self._parameters.get(identifier)
            if parameter is None or parameter.field == "buffer":
                raise _broken(f"{what} names {identifier!r}, which is not a value of the pipeline")
        _check_operators(expression, what)


def _check_operators(expression: Expression | int, what: str) -> None:
    if isinstance(expression, int):
        return
    count = 2 if expression.operator in BINARY_OPERATORS else FUNCTIONS.get(expression.operator, 0)
    of_parameters = not expression.operands or any(isinstance(each, Expression) for each in expression.operands)
    if count != len(expression.operands) or not of_parameters:
        raise _broken(f"{what} has the operator {expression.operator!r} with {len(expression.operands)} operands")
    for operand in expression.operands:
        _check_operators(operand, what)


def _check_origin(func: ScheduledFunc) -> None:
    match func.origin:
        case ByIndex(index) if index < 0:
            raise _broken(f"the index of Func {func.identifier} is {index}")
        case ByName(name) if not HALIDE_NAME.fullmatch(name):
            raise _broken(f"{name!r} is not a Func name")
        case Clone(of, ()):
            raise _broken(f"Func {func.identifier} is a clone of {of} for no Func")


def _check_parameter(parameter: Parameter) -> None:
    if not HALIDE_NAME.fullmatch(parameter.name) or not _FIELD.fullmatch(parameter.field):
        raise _broken(f"{parameter.name!r}, {parameter.field!r} is not an input or output")


def _check_source(variable: Variable, reached: set[str]) -> None:
    source = variable.source
    if isinstance(source, str):
        if not HALIDE_NAME.fullmatch(source):
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


# Numbers that may be 0, and the one that may also be negative.
_MAY_BE_ZERO = ("remainder", "offset")
_ANY_NUMBER = ("minimum",)


def _fits(directive: Directive) -> bool:
    for field in fields(directive):
        least = 0 if field.name in _MAY_BE_ZERO else -_MAXIMUM_NUMBER if field.name in _ANY_NUMBER else 1
        value = getattr(directive, field.name)
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, int) and not isinstance(number, bool) and not least <= number <= _MAXIMUM_NUMBER:
                return False
    match directive:
        case Tile(previous, outers, inners, factors):
            return 0 < len(previous) == len(outers) == len(inners) == len(factors)
        case GpuBlocks(variables) | GpuThreads(variables):
            return 1 <= len(variables) <= MAXIMUM_GPU_DIMENSIONS
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
        f"The schedule is invalid: {what}.", next_step="Use a schedule that the SDK or Halide 21 wrote."
    )
