"""`--generator-arg-sets`, in the syntax of Halide's autotune loop."""

from __future__ import annotations

from targets.errors import UsageError
from targets.generator.reference import parse_parameters

_OPTION = "--generator-arg-sets"
_EXAMPLE = 'Write sets with spaces between them and ; inside a set, such as "radius=1;tiles=2 radius=3".'


def parse_argument_sets(text: str) -> tuple[tuple[str, ...], ...]:
    """Sets separated by spaces, parameters inside a set by `;`: each set as its `key=value` items.

    Raises:
        UsageError: there is no set, an item is not `key=value`, a set names a key twice, or two sets are equal.
    """
    sets = tuple(tuple(item for item in part.split(";") if item) for part in text.split())
    if not sets or not all(sets):
        raise UsageError(f"{_OPTION} {text!r} has an empty set.", next_step=_EXAMPLE)
    seen: list[dict[str, str]] = []
    for items in sets:
        try:
            parameters = parse_parameters(items)
        except UsageError as error:
            raise UsageError(f"{_OPTION}: {error.message}", next_step=_EXAMPLE) from error
        if len(parameters) < len(items):
            raise UsageError(f"{_OPTION}: the set {';'.join(items)!r} names a parameter twice.")
        if parameters in seen:
            raise UsageError(f"{_OPTION}: the set {';'.join(items)!r} is there twice.")
        seen.append(parameters)
    return sets
