"""What drafts call a pipeline's Funcs and loops, and where a schedule finds them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from halide_autotune.autotune_loop.schedule.check import make_identifier
from halide_autotune.autotune_loop.schedule.model import Accessor, DimensionList, Schedule, Variable
from halide_autotune.autotune_loop.schedule.values import OUTERMOST
from halide_autotune.targets.pipeline.shape import FuncShape, PipelineShape, ReadShape, StageShape

_PLAIN = re.compile(r"[A-Za-z0-9_$.]+")
# What nobody has named: Halide makes a letter and a number of it, which differ between processes.
_UNNAMED = re.compile(r"[a-z][0-9]+(?:\$[a-z0-9]+)?")


def _stems(name: str) -> set[str]:
    """The loops that one of a name may be made of: `xoi_yo` is of `x` and `y`."""
    return {word.rstrip("oi") for word in re.split(r"[_$]+", name.strip("_$"))}


@dataclass(frozen=True)
class PipelineNames:
    """The names of one pipeline: equal pipelines have equal names.

    A Func's identifier is its name in Halide as far as that is an identifier, and no name that a loop may get which is
    made of others: of `x` a split makes `xo` and `xi`. So is a loop's, but for those without a name, which are called
    after the first Func that has them. Loops with one name in Halide have one identifier: what `compute_with` makes
    one loop must have one name.
    """

    shape: PipelineShape

    @cached_property
    def _loop_names(self) -> set[str]:
        return {loop.name for func in self.shape.funcs for stage in func.stages for loop in stage.loops}

    @cached_property
    def funcs(self) -> dict[str, str]:
        """Halide's names of the Funcs → identifiers."""
        found: dict[str, str] = {}
        stems = {stem for name in self._loop_names for stem in _stems(name)}
        for func in self.shape.funcs:
            is_like_a_loop = func.name not in self._loop_names and stems.issuperset(_stems(func.name))
            name = f"{func.name}_func" if is_like_a_loop else func.name
            found[func.name] = make_identifier(name, set(found.values()))
        return found

    @cached_property
    def are_plain(self) -> bool:
        """Whether the headers that Halide's autoschedulers write are C++: they have the names as they are."""
        return all(_PLAIN.fullmatch(name) for name in (*self.funcs, *self._loop_names))

    @cached_property
    def shapes(self) -> dict[str, FuncShape]:
        """Identifiers of the Funcs → what they compute, producers first."""
        return {self.funcs[func.name]: func for func in self.shape.funcs}

    @cached_property
    def reads(self) -> dict[tuple[str, int], dict[str, ReadShape]]:
        """Identifier of a Func and a stage → the Funcs that the stage reads, by their identifiers."""
        return {
            (name, index): self.read_by(stage)
            for name, shape in self.shapes.items()
            for index, stage in enumerate(shape.stages)
        }

    def read_by(self, stage: StageShape) -> dict[str, ReadShape]:
        """The Funcs that a stage reads, by their identifiers."""
        return {self.funcs[read.name]: read for read in stage.reads if not read.is_input and read.name in self.funcs}

    @cached_property
    def _variables(self) -> dict[tuple[str, int], tuple[Variable, ...]]:
        taken: set[str] = {*self.funcs.values()}
        shared: dict[tuple[str, bool], Variable] = {}
        found = {}
        for func in self.shape.funcs:
            for index, stage in enumerate(func.stages):
                row = []
                for position, loop in enumerate(stage.loops):
                    known = shared.get((loop.name, loop.is_reduction))
                    if known is None:
                        unnamed = _UNNAMED.fullmatch(loop.name) is not None
                        place = Accessor(
                            self.funcs[func.name], index - 1 if index else None, DimensionList.DIMS, position
                        )
                        called = loop.name.replace("$", "_")
                        if unnamed:
                            called = f"{self.funcs[func.name]}_{re.sub('[0-9]+', '', called) or called}"
                        known = Variable(
                            make_identifier(called, taken), loop.is_reduction, place if unnamed else loop.name
                        )
                        taken.add(known.identifier)
                        shared[loop.name, loop.is_reduction] = known
                    row.append(known)
                found[self.funcs[func.name], index] = tuple(row)
        return found

    def loops(self, func: str, stage: int) -> tuple[Variable, ...]:
        """The loops of a stage before any scheduling, the innermost first; stage 0 is the pure definition."""
        return self._variables.get((func, stage), ())

    @cached_property
    def original(self) -> dict[str, Variable]:
        """Every loop before any scheduling, by its identifier."""
        return {variable.identifier: variable for row in self._variables.values() for variable in row}

    def halide_name(self, identifier: str, schedule: Schedule, funcs: dict[str, str]) -> str | None:
        """Halide's name of a variable of a schedule; None if the pipeline has no such variable.

        Args:
            funcs: the schedule's identifiers of Funcs → the drafts'.
        """
        if identifier == OUTERMOST:
            return OUTERMOST
        variable = next((each for each in schedule.variables if each.identifier == identifier), None)
        match variable:
            case Variable(_, _, str(name)):
                return name
            case Variable(_, _, Accessor() as place):
                return self._name_at(place, funcs.get(place.func, ""))
            case _:
                return None

    def _name_at(self, place: Accessor, func: str) -> str | None:
        shape = self.shapes.get(func)
        index = 0 if place.update is None else place.update + 1
        if shape is None or index >= len(shape.stages):
            return None
        loops = shape.stages[index].loops
        match place.dimensions:
            case DimensionList.ARGS:
                names = list(shape.args)
            case DimensionList.RVARS:
                names = [loop.name for loop in loops if loop.is_reduction]
            case DimensionList.DIMS:
                names = [loop.name for loop in loops]
        return names[place.position] if place.position < len(names) else None
