"""Parts of one draft in another."""

from __future__ import annotations

from random import Random

from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.draft.structure import DraftStructure
from halide_autotune.autotune_loop.schedule.model import Clone, Wrapper


def crossover(into: DraftStructure, other: Draft, source: Random) -> Draft | None:
    """The first draft with a part of the other: some Funcs and what is computed in their loops, or with them.

    None where the two do not differ in what was chosen.
    """
    if into.draft.parameters != other.parameters and other.parameters and into.draft.parameters:
        return None
    factored = {name for draft in (into.draft, other) for name, func in draft.funcs.items() if func.is_factored}
    differing = [
        name for name, func in other.funcs.items() if into.draft.funcs.get(name) != func and name not in factored
    ]
    if not differing:
        return None
    first = source.choice(differing)
    taken = _family(other, first) if source.random() < 0.6 else {first}
    if source.random() < 0.3:
        taken |= _family(other, source.choice(differing))
    taken -= factored
    funcs = {name: other.funcs[name] if name in taken else func for name, func in into.draft.funcs.items()}
    # In the other's order: that of a set differs between processes. Wrappers and clones of what is taken come along.
    for name, func in other.funcs.items():
        is_of_taken = isinstance(func.origin, Wrapper | Clone) and {func.origin.of, *func.origin.consumers} & taken
        if name in taken or is_of_taken:
            funcs.setdefault(name, func)
    made = Draft(funcs, into.draft.parameters or other.parameters)
    return None if made == into.draft else made


def _family(draft: Draft, name: str) -> set[str]:
    """A Func and all that is computed in its loops."""
    family = {name}
    while True:
        more = {
            each
            for each, func in draft.funcs.items()
            if func.compute is not None and func.compute.func in family and each not in family
        }
        if not more:
            return family
        family |= more
