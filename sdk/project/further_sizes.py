"""The further sizes that a pipeline is tuned for: what is given of them, and what follows from that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from halide_autotune.devices.timing.measure_settings import KernelInputs
from halide_autotune.sdk.project.pipeline_facts import KnownPipeline, check_names, check_sizes, placed
from halide_autotune.targets.build.runner_input_file import array_shape
from halide_autotune.targets.errors import GeneratorError, UsageError
from halide_autotune.targets.generator.run import GeneratorFailure
from halide_autotune.targets.pipeline.facts import PipelineFacts, SizeSource, sizes_text
from halide_autotune.targets.pipeline.inspection import Inspected, inspect_pipeline
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler
from halide_autotune.targets.values.texts import parse_size_set, size_set_text

_OPTION = "--also-size"


def with_further_sizes(
    inspected: Inspected,
    known: KnownPipeline,
    inputs: KernelInputs,
    compiler: HostCppCompiler,
    tell: Callable[[str], None],
) -> KernelInputs:
    """The inputs with every argument's size or value at each of the further sizes.

    Args:
        inputs: as `KnownPipeline.called_with` returns them.
        tell: called with a sentence about the sizes that follow from the given ones.

    Outputs that are not named follow from the inputs. Inputs that are not named have the main size; where only outputs
    are named, they follow from those, unless they come from files.

    Raises:
        UsageError: a size is for no argument, of another number of dimensions, too small, or there twice.
        GeneratorError: an argument has no size there.
    """
    if known.facts is None:
        return inputs  # what is not given has the main size
    of_files = {name: "x".join(map(str, array_shape(file))) for name, file in inputs.files.items()}
    main = {**_texts(known.facts), **inputs.sizes, **inputs.scalars, **of_files}
    sizes: list[dict[str, str]] = []
    for text in inputs.also_sizes:
        named = parse_size_set(text)
        check_names(known.facts, named, _OPTION)
        given = {**main, **dict.fromkeys(_following(known.facts, named) - of_files.keys(), ""), **named}
        facts = placed(_inspected(inspected, given, compiler, text), given)
        check_sizes(facts, named, _OPTION)
        told = _texts(facts)
        if {**main, **told} == main or told in sizes:
            raise UsageError(
                f"{_OPTION} {text!r} is a size that is tuned for already.",
                next_step="Leave it out, or give another one.",
            )
        follow = [a for a in facts.arguments if a.name not in named and a.text and a.text != main.get(a.name)]
        if follow:
            tell(f"Sizes that follow at {text}: {sizes_text(follow)}.")
        if _is_smaller(facts, known.facts):
            tell(
                f"Schedules are made for the estimates and may not fit a smaller size: if many fail at {text}, give the"
                " smallest size with --estimate and the others with --also-size."
            )
        sizes.append(told)
    # An input from a file stays as it is where no other size is given for it.
    texts = (
        size_set_text({name: size for name, size in one.items() if name not in inputs.files or size != main[name]})
        for one in sizes
    )
    return replace(inputs, also_sizes=tuple(texts))


def _is_smaller(there: PipelineFacts, main: PipelineFacts) -> bool:
    """Whether an output has a smaller extent there."""
    pairs = zip(there.outputs, main.outputs, strict=True)
    return any(
        one.extent < other.extent
        for of_there, of_main in pairs
        for one, other in zip(of_there[0].dimensions, of_main[0].dimensions, strict=True)
    )


def _texts(facts: PipelineFacts) -> dict[str, str]:
    return {argument.name: argument.text for argument in facts.arguments if argument.text}


def _following(facts: PipelineFacts, named: Mapping[str, str]) -> set[str]:
    """The buffers whose size follows from the named ones: outputs from inputs, or inputs from outputs alone."""
    inputs = {argument.name for argument in facts.inputs if not argument.is_scalar}
    outputs = {argument.name for argument in facts.arguments} - {argument.name for argument in facts.inputs}
    if inputs & named.keys():
        return outputs
    return inputs | outputs if outputs & named.keys() else set()


def _inspected(inspected: Inspected, given: Mapping[str, str], compiler: HostCppCompiler, text: str) -> PipelineFacts:
    facts = inspect_pipeline(inspected, given, compiler)
    if isinstance(facts, GeneratorFailure):
        raise GeneratorError(f"{_OPTION} {text!r}: {facts.message}")
    if missing := facts.coming_from(SizeSource.DEFAULT):
        raise GeneratorError(
            f"{_OPTION} {text!r}: nothing says what size {missing[0].name} has there.",
            next_step=f'Give it, too, such as {_OPTION} "{text} {missing[0].name}={missing[0].text}".',
        )
    return facts
