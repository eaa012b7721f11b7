"""What is known of a pipeline before it is scheduled: its arguments with their sizes, and its own schedule."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated

from halide_autotune.targets.values.checks import whole_number

_INT32 = whole_number(-(2**31), 2**31 - 1)


class SizeSource(Enum):
    """Where a size or a value comes from."""

    GIVEN = "given"
    GENERATOR = "generator"
    # From the other arguments, by bounds inference.
    INFERRED = "inferred"
    DEFAULT = "default"
    MISSING = "missing"


@dataclass(frozen=True)
class DimensionFacts:
    """One dimension of a buffer.

    Attributes:
        required: the least coordinate and the extent that the outputs need; None if that depends on data.
    """

    min: Annotated[int, _INT32]
    extent: Annotated[int, _INT32]
    source: SizeSource
    required: tuple[int, ...] | None = None

    @property
    def is_too_small(self) -> bool:
        """Whether the outputs need more of an input than there is."""
        if self.required is None:
            return False
        low, extent = self.required
        return low < self.min or low + extent > self.min + self.extent


@dataclass(frozen=True)
class ArgumentFacts:
    """One argument of a generator's function.

    Attributes:
        kind: 'input_buffer', 'input_scalar' or 'output_buffer'.
        type: such as 'uint8'.
        dimensions: of a buffer.
        value, source: of a scalar.
    """

    name: str
    kind: str
    type: str
    dimensions: tuple[DimensionFacts, ...] = ()
    value: str = ""
    source: SizeSource = SizeSource.MISSING

    @property
    def is_scalar(self) -> bool:
        """Whether it is a value, not a buffer."""
        return self.kind == "input_scalar"

    @property
    def text(self) -> str:
        """The size or value as `--estimate` takes it; empty for a buffer without dimensions."""
        if self.is_scalar:
            return self.value
        extents = "x".join(str(dimension.extent) for dimension in self.dimensions)
        if not any(dimension.min for dimension in self.dimensions):
            return extents
        return f"{extents}@{'x'.join(str(dimension.min) for dimension in self.dimensions)}"

    def comes_from(self, source: SizeSource) -> bool:
        """Whether all or a part of it does."""
        if self.is_scalar:
            return self.source is source
        return any(dimension.source is source for dimension in self.dimensions)


@dataclass(frozen=True)
class PipelineFacts:
    """A generator's pipeline with one set of parameters, for one target.

    Attributes:
        scheduled: the Funcs that the generator schedules although an autoscheduler runs.
        inputs: in order.
        outputs: in order; each is one argument for every element of its tuple.
    """

    scheduled: tuple[str, ...] = ()
    inputs: tuple[ArgumentFacts, ...] = ()
    outputs: tuple[tuple[ArgumentFacts, ...], ...] = ()

    @property
    def arguments(self) -> tuple[ArgumentFacts, ...]:
        """All of them, as the function takes them."""
        return (*self.inputs, *(element for output in self.outputs for element in output))

    def coming_from(self, source: SizeSource) -> tuple[ArgumentFacts, ...]:
        """The arguments of which a size or the value comes from there."""
        return tuple(argument for argument in self.arguments if argument.comes_from(source))

    def estimates(self) -> dict[str, str]:
        """What the plug-in that prepares a pipeline is told: outputs by their place, as a Func has another name."""
        told = {argument.name: argument.text for argument in self.inputs if argument.text}
        firsts = (output[0] for output in self.outputs)
        return {**told, **{f"#{index}": first.text for index, first in enumerate(firsts) if first.text}}


def sizes_text(arguments: Iterable[ArgumentFacts]) -> str:
    """'input 1920x1080x3, gain 1.5', for messages."""
    return ", ".join(f"{argument.name} {argument.text}" for argument in arguments)


def estimate_flags(arguments: Iterable[ArgumentFacts]) -> str:
    """'--estimate input=1920x1080x3 --estimate gain=1.5', for messages."""
    return " ".join(f"--estimate {argument.name}={argument.text}" for argument in arguments)
