"""The parameter sets that a run may time: the combinations of tuned values that fulfil the restrictions."""

from __future__ import annotations

import bisect
import hashlib
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from halide_autotune.autotune_loop.parameters.restriction import Restriction, parse_restriction
from halide_autotune.autotune_loop.parameters.tuned_parameter import TunedParameter, as_number, parse_tuned_parameter
from halide_autotune.targets.errors import UsageError

# A space with more sets is sampled. The surrogate predicts so many in a moment.
MOST_LISTED = 4096
# Values that are looked at while sets are listed, or while one is sampled: a restriction may exclude nearly all.
_MOST_STEPS = 50_000
_MOST_SAMPLING_STEPS = 10_000

# Parameter → value.
ParameterSet = Mapping[str, str]


@dataclass(frozen=True)
class ParameterSpace:
    """What is tuned, as the user wrote it.

    Attributes:
        tune: parameter → its values, such as '16..512:x2'.
        restrict: conditions that every set must fulfil.
        others: the other parameters in those conditions, with their values.
        defaults: the tuned parameters' values in the generator; the set that is to be beaten.
    """

    tune: Mapping[str, str]
    restrict: tuple[str, ...] = ()
    others: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def parameters(self) -> tuple[TunedParameter, ...]:
        """The tuned parameters."""
        return tuple(parse_tuned_parameter(name, text) for name, text in self.tune.items())

    @cached_property
    def restrictions(self) -> tuple[Restriction, ...]:
        """What sets must fulfil."""
        return tuple(parse_restriction(text) for text in self.restrict)

    @cached_property
    def listed(self) -> tuple[ParameterSet, ...] | None:
        """Every set, in the order of the values; None if there are too many."""
        found: list[ParameterSet] = []
        for steps, one in enumerate(self._walk(lambda values: values)):
            if one is not None:
                found.append(one)
            if len(found) > MOST_LISTED or steps > _MOST_STEPS:
                return None
        return tuple(found)

    @property
    def combinations(self) -> int:
        """How many sets there would be without restrictions."""
        return math.prod(len(parameter.values) for parameter in self.parameters)

    def check_not_empty(self) -> None:
        """Check that a set fulfils the restrictions.

        Raises:
            UsageError: none does.
        """
        if self.listed is not None and not self.listed:
            raise UsageError(
                f"The restrictions exclude every one of the {self.combinations} parameter sets.",
                next_step="Change a --restrict, or the values of a --tune.",
            )
        if self.listed is None and self.random_set(random.Random(0)) is None:
            raise UsageError(
                f"No parameter set that fulfils the restrictions was found among {self.combinations}.",
                next_step="Change a --restrict, or the values of a --tune.",
            )

    def random_set(self, source: random.Random) -> ParameterSet | None:
        """A set at random; None if none was found soon."""

        def shuffled(values: Sequence[str]) -> Sequence[str]:
            return source.sample(values, len(values))

        for steps, one in enumerate(self._walk(shuffled)):
            if one is not None:
                return one
            if steps > _MOST_SAMPLING_STEPS:
                break
        return None

    def neighbours(self, one: ParameterSet) -> Iterator[ParameterSet]:
        """The sets that differ in one parameter: by one step if it is ordered."""
        for parameter in self.parameters:
            for value in self._near(parameter, one[parameter.name]):
                changed = {**one, parameter.name: value}
                if self.contains(changed):
                    yield changed

    def contains(self, one: ParameterSet) -> bool:
        """Whether the values are among the tuned ones, and fulfil the restrictions."""
        is_listed = all(one[parameter.name] in parameter.values for parameter in self.parameters)
        return is_listed and all(each.holds({**self.others, **one}) for each in self.restrictions)

    def position(self, one: ParameterSet) -> tuple[float, ...]:
        """A number for each parameter: from 0 to 1 along its values if it is ordered, else the place of the value."""
        return tuple(_position(parameter, one[parameter.name]) for parameter in self.parameters)

    def _near(self, parameter: TunedParameter, value: str) -> Sequence[str]:
        values = parameter.values
        if not parameter.is_ordered:
            return [each for each in values if each != value]
        if value in values:
            place = values.index(value)
            return [*values[max(0, place - 1) : place], *values[place + 1 : place + 2]]
        above = bisect.bisect([Fraction(each) for each in values], as_number(value) or 0)  # a default off the range
        return values[max(0, above - 1) : above + 1]

    def _walk(self, order: Callable[[Sequence[str]], Sequence[str]]) -> Iterator[ParameterSet | None]:
        """Sets that fulfil the restrictions, depth first, and None for each value that a restriction excludes.

        A restriction is applied as soon as its parameters have values, so that most sets are never looked at.
        """
        bound = set(self.others)
        checks: list[list[Restriction]] = []
        for parameter in self.parameters:
            before, bound = bound, bound | {parameter.name}
            checks.append([each for each in self.restrictions if each.names <= bound and not each.names <= before])
        values: dict[str, str] = {}

        def walk(depth: int) -> Iterator[ParameterSet | None]:
            if depth == len(self.parameters):
                yield dict(values)
                return
            parameter = self.parameters[depth]
            for value in order(parameter.values):
                values[parameter.name] = value
                if all(check.holds({**self.others, **values}) for check in checks[depth]):
                    yield from walk(depth + 1)
                else:
                    yield None

        return walk(0)


def set_text(one: ParameterSet) -> str:
    """A set as users read it: 'tile_x=64 vector=16'."""
    return " ".join(f"{name}={value}" for name, value in one.items())


def set_sha256(one: ParameterSet) -> str:
    """The hash of a set; equal for equal values."""
    return hashlib.sha256("\n".join(f"{name}={one[name]}" for name in sorted(one)).encode()).hexdigest()


def _position(parameter: TunedParameter, value: str) -> float:
    values = parameter.values
    if not parameter.is_ordered:
        return float(values.index(value)) if value in values else -1.0
    if value in values:
        return values.index(value) / (len(values) - 1)
    # A default between two values, or beyond them.
    numbers, number = [float(each) for each in values], float(as_number(value) or 0)
    above = min(max(bisect.bisect(numbers, number), 1), len(values) - 1)
    low, high = numbers[above - 1], numbers[above]
    share = min(max((number - low) / (high - low), 0.0), 1.0)
    return (above - 1 + share) / (len(values) - 1)
