"""What is known of a generator's pipeline: each argument has a size or a value, or the user is told what to give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from halide_autotune.devices.timing.measure_settings import KernelInputs
from halide_autotune.targets.build.array_source import check_raw_file
from halide_autotune.targets.build.runner_input_file import array_shape
from halide_autotune.targets.errors import GeneratorError, ToolchainError, UsageError
from halide_autotune.targets.generator.run import GeneratorFailure
from halide_autotune.targets.pipeline.estimates import EstimateOptions
from halide_autotune.targets.pipeline.facts import (
    ArgumentFacts,
    DimensionFacts,
    PipelineFacts,
    SizeSource,
    estimate_flags,
    sizes_text,
)
from halide_autotune.targets.pipeline.inspection import Inspected, inspect_pipeline, schedules_itself
from halide_autotune.targets.pipeline.preparation import PipelinePreparation, build_preparation_plugin
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler
from halide_autotune.targets.values.checks import nearest_hint
from halide_autotune.targets.values.raw_file import RawFile

_FUNCS_SHOWN = 4
ESTIMATE = "--estimate"
_SIZE, _SCALAR = "--size", "--scalar"


@dataclass(frozen=True)
class KnownPipeline:
    """A pipeline whose arguments all have a size or a value.

    Attributes:
        facts: None if the generator could not be asked, as without a C++ compiler.
    """

    facts: PipelineFacts | None = None

    @property
    def estimates(self) -> dict[str, str]:
        """For the search; none where the generator gives them all."""
        return {} if self.facts is None or _all_from_generator(self.facts) else self.facts.estimates()

    def schedules_itself(self, inspected: Inspected, compiler: HostCppCompiler, *, can_tell_sizes: bool) -> bool:
        """Whether the generator has a schedule of its own that can be timed.

        Args:
            can_tell_sizes: a kernel is told what it is called with; that of the own schedule does not know estimates
                that the generator does not give.
        """
        if self.facts is None or (self.estimates and not can_tell_sizes):
            return False
        return bool(self.facts.scheduled) or schedules_itself(inspected, compiler)

    def typed(self, inputs: KernelInputs) -> KernelInputs:
        """The inputs with the types of their raw files, which are those of the arguments.

        Raises:
            UsageError: such a file has another size.
        """
        types = {} if self.facts is None else {argument.name: argument.type for argument in self.facts.arguments}
        files = dict(inputs.files)
        for name, path in inputs.files.items():
            raw = RawFile.of(path)
            if raw is not None and name in types:
                raw = replace(raw, type=raw.type or types[name])
                check_raw_file(raw)
                files[name] = raw.path
        return replace(inputs, files=files)

    def called_with(self, inputs: KernelInputs) -> KernelInputs:
        """The inputs with the sizes and values that the kernel itself does not tell; of several sizes with all."""
        if self.facts is None or (_all_from_generator(self.facts) and not inputs.also_sizes):
            return inputs
        known = [argument for argument in self.facts.arguments if argument.text and argument.name not in inputs.files]
        sizes = {argument.name: argument.text for argument in known if not argument.is_scalar}
        scalars = {argument.name: argument.text for argument in known if argument.is_scalar}
        return replace(inputs, sizes={**sizes, **inputs.sizes}, scalars={**scalars, **inputs.scalars})

    def notices(self, generator_name: str) -> list[str]:
        """What to tell the user, each a sentence."""
        if self.facts is None:
            return []
        told = []
        if scheduled := self.facts.scheduled:
            shown = ", ".join(scheduled[:_FUNCS_SHOWN])
            more = f" and {len(scheduled) - _FUNCS_SHOWN} more" if len(scheduled) > _FUNCS_SHOWN else ""
            count = "1 Func" if len(scheduled) == 1 else f"{len(scheduled)} Funcs"
            told.append(
                f"Generator {generator_name} schedules {count} itself ({shown}{more}). Autoschedulers and headers are"
                " applied without that schedule."
            )
        if inferred := self.facts.coming_from(SizeSource.INFERRED):
            told.append(f"Estimates that follow from the others: {sizes_text(inferred)}.")
        if default := self.facts.coming_from(SizeSource.DEFAULT):
            told.append(f"Estimates by default: {sizes_text(default)}.")
        return told


def know_pipeline(
    inspected: Inspected,
    asked: EstimateOptions,
    inputs: KernelInputs,
    compiler: HostCppCompiler,
    *,
    must_be_whole: bool = True,
) -> KnownPipeline:
    """Ask the generator for its arguments; sizes come from `asked`, the generator, `inputs`, or the other arguments.

    Args:
        must_be_whole: every argument needs a size or a value; else none is known of a pipeline that lacks one.

    Raises:
        UsageError: an estimate is for no argument, of another number of dimensions, or too small.
        GeneratorError: an argument has no estimate, and no default was asked for.
    """
    try:
        facts = inspect_pipeline(inspected, asked.given, compiler)
    except ToolchainError:
        return KnownPipeline()
    if isinstance(facts, GeneratorFailure):
        if asked.given:
            raise GeneratorError(facts.message)
        return KnownPipeline()  # the search has the same trouble, and tells it
    check_names(facts, asked.given)
    given = dict(asked.given)
    if _missing(facts) and (of_inputs := _sizes_of(inputs, facts)):
        given = {**of_inputs, **given}
        again = inspect_pipeline(inspected, given, compiler)
        facts = facts if isinstance(again, GeneratorFailure) else again
    facts = placed(facts, given)
    check_sizes(facts, asked.given)
    if (missing := _missing(facts)) and not asked.use_defaults:
        if not must_be_whole:
            return KnownPipeline(replace(facts, inputs=(), outputs=()))
        *most, last = (argument.name for argument in missing)
        names = f"{', '.join(most)} and {last}" if most else last
        raise GeneratorError(
            f"Generator {inspected.generator_name} gives no estimate for {names}, so there is no size to tune for.",
            next_step=f"Give sizes as your users have them, such as {estimate_flags(missing)}, or use"
            " --default-estimates for just these.",
        )
    return KnownPipeline(facts)


def prepare_pipeline(
    inspected: Inspected,
    asked: EstimateOptions,
    inputs: KernelInputs,
    compiler: HostCppCompiler,
    *,
    must_be_whole: bool = True,
    tell: Callable[[str], None] = lambda text: None,
) -> tuple[PipelinePreparation | None, KernelInputs]:
    """What is done to the pipeline before a schedule is applied to it, and what its kernel is called with, at one size.

    Raises:
        UsageError, GeneratorError: as `know_pipeline`; or an input is of no argument, or of one of another kind.
    """
    known = know_pipeline(inspected, asked, inputs, compiler, must_be_whole=must_be_whole)
    if known.facts is None:
        return None, inputs
    for option, texts in ((_SIZE, inputs.sizes), (_SCALAR, inputs.scalars)):
        check_names(known.facts, texts, option)
    for name, file in inputs.files.items():
        _argument(known.facts, name, f"--input {name}={file}")
    for notice in known.notices(inspected.generator_name):
        tell(notice)
    called_with = replace(known.called_with(known.typed(inputs)), also_sizes=())
    return PipelinePreparation(build_preparation_plugin(compiler), known.estimates), called_with


def _all_from_generator(facts: PipelineFacts) -> bool:
    return all(
        not facts.coming_from(source)
        for source in SizeSource
        if source not in (SizeSource.GENERATOR, SizeSource.MISSING)
    )


def _missing(facts: PipelineFacts) -> tuple[ArgumentFacts, ...]:
    return facts.coming_from(SizeSource.DEFAULT)


def check_names(facts: PipelineFacts, given: Mapping[str, str], option: str = ESTIMATE) -> None:
    """Check that sizes and values are of arguments, and of their kinds.

    Raises:
        UsageError: one is not; `option` is what gave it.
    """
    for name, text in given.items():
        argument = _argument(facts, name, f"{option} {name}={text}")
        count = len(argument.dimensions)
        extents = text.partition("@")[0].split("x")
        is_size = all(extent.isdigit() for extent in extents)
        if (argument.is_scalar and len(extents) == 1) or (not argument.is_scalar and is_size and len(extents) == count):
            continue
        kind = "a scalar" if argument.is_scalar else f"a buffer of {count} dimension{'' if count == 1 else 's'}"
        example = replace(argument, dimensions=tuple(replace(d, min=0) for d in argument.dimensions))
        right = option if option not in (_SIZE, _SCALAR) else _SCALAR if argument.is_scalar else _SIZE
        raise UsageError(
            f"{option} {name}={text}: {name} is {kind}.", next_step=f"Write it as {right} {name}={example.text}."
        )


def _argument(facts: PipelineFacts, name: str, asked: str) -> ArgumentFacts:
    """The argument of that name; `asked` is what the user has written."""
    arguments = {argument.name: argument for argument in facts.arguments}
    if name not in arguments:
        raise UsageError(
            f"{asked}: the generator has no argument {name!r}{nearest_hint(name, arguments)}.",
            next_step=f"Its arguments are {', '.join(arguments)}.",
        )
    return arguments[name]


def _sizes_of(inputs: KernelInputs, facts: PipelineFacts) -> dict[str, str]:
    """What the kernel is timed with says what to expect, too."""
    known = {argument.name for argument in facts.arguments}
    files = {name: "x".join(map(str, array_shape(file))) for name, file in inputs.files.items()}
    sizes = {**files, **inputs.sizes, **inputs.scalars}
    return {name: text for name, text in sizes.items() if name in known and text}


def placed(facts: PipelineFacts, given: Mapping[str, str]) -> PipelineFacts:
    """Inputs whose least coordinates nobody gave begin where the outputs need them to."""

    def place(argument: ArgumentFacts) -> ArgumentFacts:
        if "@" in given.get(argument.name, "@"):
            return argument
        return replace(argument, dimensions=tuple(map(_moved, argument.dimensions)))

    return replace(facts, inputs=tuple(map(place, facts.inputs)))


def _moved(dimension: DimensionFacts) -> DimensionFacts:
    if dimension.is_too_small and dimension.required is not None and dimension.required[1] <= dimension.extent:
        return replace(dimension, min=dimension.required[0])
    return dimension


def check_sizes(facts: PipelineFacts, given: Mapping[str, str], option: str = ESTIMATE) -> None:
    """Check that the inputs are as large as the outputs need.

    Raises:
        UsageError: one that is given is not; `option` is what gave it.
    """
    for argument in facts.inputs:
        if argument.name not in given or not any(dimension.is_too_small for dimension in argument.dimensions):
            continue
        needed = tuple(
            d if d.required is None else replace(d, min=d.required[0], extent=d.required[1])
            for d in argument.dimensions
        )
        raise UsageError(
            f"{option} {argument.name}={given[argument.name]} is too small: the outputs need"
            f" {replace(argument, dimensions=needed).text} of it.",
            next_step="Give a larger input, or a smaller output.",
        )
