"""From what a user asks to tune to the space, checked against what the generator declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from halide_autotune.autotune_loop.parameters.restriction import Restriction
from halide_autotune.autotune_loop.parameters.space import ParameterSpace
from halide_autotune.autotune_loop.parameters.tuned_parameter import is_value
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.generator.declared_parameter import DeclaredParameter
from halide_autotune.targets.values.checks import nearest_hint


def declared_space(
    tune: Mapping[str, str],
    restrict: Sequence[str],
    given: Mapping[str, str],
    declared: Mapping[str, DeclaredParameter],
    generator: str,
) -> ParameterSpace | None:
    """The parameter sets that are tried; None where nothing is tuned.

    Args:
        tune: parameter → its values, as for `parse_tuned_parameter`.
        given: parameters with a fixed value, of -p and of the argument set.
        declared: the generator's parameters.
        generator: its name.

    Raises:
        UsageError: a parameter is unknown or also given, the generator refuses a value, or a restriction is wrong or
            excludes everything.
    """
    if not tune:
        if restrict:
            raise UsageError(
                f'--restrict "{restrict[0]}" has no parameter to restrict.', next_step="Give one with --tune."
            )
        return None
    space = ParameterSpace(dict(tune), tuple(restrict))
    for parameter in space.parameters:
        name = parameter.name
        if name not in declared:
            raise _unknown(f"--tune {name}={tune[name]}", name, declared, generator)
        if name in given:
            raise UsageError(
                f"The parameter {name} is tuned, and is also given as -p {name}={given[name]}.",
                next_step="Leave out one of the two.",
            )
        if not is_value(declared[name].default):
            raise UsageError(
                f"The parameter {name} cannot be tuned: its default {declared[name].default!r} is no single word.",
                next_step="Give it a default of letters, digits, dots, dashes and underscores.",
            )
        for value in parameter.values:
            declared[name].check(name, value)
    known = {name: parameter.default for name, parameter in declared.items()} | dict(given)
    for restriction in space.restrictions:
        _check_names(restriction, known, declared, generator)
    named = {name for restriction in space.restrictions for name in restriction.names}
    space = ParameterSpace(
        dict(tune),
        tuple(restrict),
        others={name: known[name] for name in sorted(named - tune.keys())},
        defaults={name: declared[name].default for name in tune},
    )
    space.check_not_empty()
    return space


def _check_names(
    restriction: Restriction, known: Mapping[str, str], declared: Mapping[str, DeclaredParameter], generator: str
) -> None:
    for name in sorted(restriction.names):
        if name not in known:
            raise _unknown(f'--restrict "{restriction.text}"', name, declared, generator)


def _unknown(where: str, name: str, declared: Mapping[str, DeclaredParameter], generator: str) -> UsageError:
    return UsageError(
        f"{where}: generator {generator} has no parameter {name!r}{nearest_hint(name, declared)}.",
        next_step=f"It has {', '.join(declared)}." if declared else "It has none: declare a GeneratorParam.",
    )
