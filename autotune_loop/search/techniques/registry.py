"""The techniques that can be named: those that are always there, and those of installed packages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points

from halide_autotune.autotune_loop.search.techniques.annealing import Annealing
from halide_autotune.autotune_loop.search.techniques.evolution import Evolution
from halide_autotune.autotune_loop.search.techniques.pattern import PatternSearch
from halide_autotune.autotune_loop.search.techniques.starts import Starts
from halide_autotune.autotune_loop.search.techniques.technique import Technique
from halide_autotune.autotune_loop.technique_name import TechniqueName
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.values.checks import nearest_hint

# Of a package's entry points: a name, and a class or function without arguments that makes a `Technique`.
PLUG_IN_GROUP = "halide_autotune.techniques"


def load_techniques(names: Iterable[str]) -> Mapping[str, Technique]:
    """The techniques of those names that propose schedules as data: all but Halide's own search.

    Raises:
        UsageError: there is no technique of a name, or a package's cannot be imported or made.
    """
    built_in: dict[str, Technique] = {
        TechniqueName.SKETCHES: Starts(),
        TechniqueName.EVOLUTION: Evolution(),
        TechniqueName.ANNEALING: Annealing(),
        TechniqueName.PATTERN: PatternSearch(),
    }
    return {name: built_in.get(name) or _plug_in(name) for name in names if name != TechniqueName.SAMPLING}


def installed_techniques() -> list[str]:
    """The names of the techniques of installed packages."""
    return sorted({each.name for each in entry_points(group=PLUG_IN_GROUP)} - {*TechniqueName})


def _plug_in(name: str) -> Technique:
    found = {each.name: each for each in entry_points(group=PLUG_IN_GROUP)}
    if name not in found:
        known = [*TechniqueName, *installed_techniques()]
        raise UsageError(
            f"There is no technique {name!r}{nearest_hint(name, known)}.",
            next_step=f"Name some of {', '.join(known)}, or install the package that has it.",
        )
    entry = found[name]
    try:
        technique = entry.load()()
    except Exception as error:  # it is somebody else's code
        raise _fault(entry, f"cannot be loaded: {type(error).__name__}: {error}") from error
    if not callable(getattr(technique, "propose", None)):
        raise _fault(entry, "has no method `propose`")
    return technique  # type: ignore[no-any-return]


def _fault(entry: EntryPoint, fault: str) -> UsageError:
    next_step = "Mend it (`sdk.Technique` says what a technique must have), or leave it out of --technique."
    return UsageError(f"Technique {entry.name!r}, {entry.value}, {fault}.", next_step=next_step)
