"""The `rfactor` that made a Func: an intermediate is not in the plain pipeline, and its splits are in no schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from halide_autotune.autotune_loop.schedule.directives import Directive, Rename, RFactor, Split
from halide_autotune.autotune_loop.schedule.model import StageSchedule
from halide_autotune.autotune_loop.schedule.reading.names import ReadNames
from halide_autotune.autotune_loop.schedule.values import TailStrategy

_SUFFIX = "_intm"


def factored_stages(
    funcs: Mapping[str, Any], plain: Mapping[str, Any], names: ReadNames
) -> tuple[dict[str, str], list[StageSchedule]]:
    """The Funcs that an rfactor made, each with the Func that it is of, and the stages that make them.

    Args:
        funcs: those of the scheduled pipeline, by name.
        plain: those of the plain pipeline.
    """
    owners: dict[str, str] = {}
    stages = []
    for name, func in funcs.items():
        if name in plain:
            continue
        for owner, update in _callers(name, funcs):
            if name.startswith(owner + _SUFFIX) and owner in plain and update < len(plain[owner]["stages"]):
                factoring = _Factoring(funcs[owner], func, plain[owner]["stages"][update], update, names)
                owners[name] = owner
                stages.append(factoring.stage())
                break
    return owners, stages


def _callers(name: str, funcs: Mapping[str, Any]) -> list[tuple[str, int]]:
    return [
        (caller, place)
        for caller, func in funcs.items()
        for place, stage in enumerate(func["stages"])
        if place > 0 and name in stage["calls"] and caller != name
    ]


@dataclass
class _Factoring:
    """One intermediate, and the update that it was taken out of.

    Halide keeps the new reduction variables and their extents; a split is told by the outer one, which the intermediate
    multiplies by the inner one's extent.
    """

    owner: Mapping[str, Any]
    intermediate: Mapping[str, Any]
    before: Mapping[str, Any]
    update: int
    names: ReadNames
    # Of each new variable: its extent, and what multiplies it in the intermediate.
    _extents: dict[str, Any] = field(default_factory=dict)
    _scales: dict[str, set[int]] = field(default_factory=dict)

    def stage(self) -> StageSchedule:
        outside = self.owner["stages"][self.update]["reductions"]
        variables = self.intermediate["args"][len(self.owner["args"]) :]
        pairs = list(zip((each["name"] for each in outside), variables, strict=False))
        inside = self.intermediate["stages"][1]
        scaled: dict[str, set[int]] = {}
        for name, factor in inside["scaled"]:
            scaled.setdefault(name, set()).add(factor)
        for each in (*outside, *inside["reductions"]):
            self._extents[each["name"]] = each["extent"]
            self._scales[each["name"]] = scaled.get(dict(pairs).get(each["name"], each["name"]), set())
        preserved = tuple((self._reduction(old), self.names.variable(new)) for old, new in pairs)
        made = RFactor(preserved, self.names.func(self.intermediate["name"]))
        self.names.use_func(self.owner["name"])
        self.names.use_func(self.intermediate["name"])
        return StageSchedule(self.names.func(self.owner["name"]), self.update - 1, (*self._splits(), made))

    def _reduction(self, name: str) -> str:
        return self.names.variable(name, is_reduction=True)

    def _splits(self) -> list[Directive]:
        """What the update's own reduction variables were made into before."""
        known = {each["name"]: each["extent"] for each in self.before["reductions"]}
        new = [name for name in self._extents if name not in known]
        gone = [name for name in known if name not in self._extents]
        splits: list[Directive] = []
        for old in gone:
            found = [
                (outer, inner, factor)
                for outer in new
                for inner in new
                # An extent that is no number comes from a buffer, and nothing was split by it.
                if outer != inner and isinstance(factor := self._extents[inner], int) and factor in self._scales[outer]
                if not isinstance(known[old], int) or -(-known[old] // factor) == self._extents[outer]
            ]
            if len(found) == 1:
                outer, inner, factor = found[0]
                names = [self._reduction(name) for name in (old, outer, inner)]
                splits.append(Split(names[0], names[1], names[2], factor, TailStrategy.GUARD_WITH_IF))
                new = [name for name in new if name not in (outer, inner)]
            elif not found and len(new) == 1 and len(gone) == 1:
                splits.append(Rename(self._reduction(old), self._reduction(new.pop())))
            else:
                self.names.differences.append(
                    f"Func {self.owner['name']}, update {self.update - 1}: how {old} was split before its rfactor"
                    f" into {', '.join(new) or 'nothing'} cannot be told."
                )
        return splits
