"""Lookups: data say which place of a table is read, and along one argument several values of that place are.

Where these values lie side by side, vectors of them are loaded as they are. Vectors along anything else are gathered,
value by value: bilateral grids and tables of colours are read so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from halide_autotune.autotune_loop.draft.model import Draft, FuncDraft
from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site
from halide_autotune.autotune_loop.schedule.directives import AlignStorage, ReorderStorage
from halide_autotune.targets.pipeline.shape import StageShape

# Fewer values are no vector.
_FEWEST = 4


@dataclass(frozen=True)
class Lookup:
    """A stage that reads tables of vectors.

    Attributes:
        argument: of which each value reads the next value of one place.
        loop: the stage's over it, before any scheduling.
        extent: of it, at the estimates.
        others: the inlined Funcs that it reads besides, of which the loop needs no other points.
    """

    site: Site
    argument: str
    loop: str
    extent: int
    others: tuple[str, ...]


def lookup_at(structure: DraftStructure, site: Site) -> Lookup | None:
    """How a stage reads tables of vectors, if it does and its Func is no output.

    Along the first argument no value is gathered unless data say where each of them is: that is no lookup.
    """
    shape = structure.shape(site.func)
    if shape is None or shape.is_output or shape.is_extern:
        return None
    sizes = dict(zip(shape.args, shape.extents, strict=True))
    found = {}
    for loop, variable in zip(shape.stages[site.stage].loops, structure.loops(site), strict=True):
        extent = None if loop.is_reduction else sizes.get(loop.name)
        moving, still = _other_reads(shape.stages[site.stage], loop.name)
        if extent is None or extent < _FEWEST or not still:
            continue
        if not _is_wanted(structure, site.func, shape.args.index(loop.name)):
            continue
        if [*_read(structure, site, loop.name)]:
            if loop.name == shape.args[0]:
                return None
            others = tuple(_still(structure, site, loop.name))
            found[moving] = Lookup(site, loop.name, variable.identifier, extent, others)
    return found[min(found)] if found else None


def tables_of(structure: DraftStructure, lookup: Lookup, is_stored: Callable[[str], bool]) -> Mapping[str, int]:
    """The Funcs with storage that are read so → the place of their argument along which the values of a place are."""
    found: dict[str, int] = {}
    todo = [*_read(structure, lookup.site, lookup.argument)]
    while todo:
        name, place = todo.pop()
        shape = structure.shape(name)
        if shape is None or shape.is_output or shape.is_extern or name in found:
            continue
        if is_stored(name):
            found[name] = place
            continue
        for called, read in structure.reads[Site(name, 0)].items():
            followed = [d.follows(shape.args[place]) for d in read.dimensions]
            todo += [(called, inner) for inner, follows in enumerate(followed) if follows]
    return found


def with_values_together(structure: DraftStructure, lookup: Lookup) -> Draft | None:
    """The draft in which each table has the values of one place side by side; None where no table is stored."""
    draft = structure.draft
    tables = tables_of(structure, lookup, lambda name: not structure.is_inlined(name))
    for name, place in tables.items():
        if draft.funcs[name].stages:
            first = structure.loops(Site(name, 0))[place].identifier
            draft = draft.with_func(name, stored_along(structure, name, first))
    return draft if tables else None


def stored_along(structure: DraftStructure, name: str, first: str) -> FuncDraft:
    """A Func stored with one argument innermost, and the others in their order."""
    func, loops = structure.draft.funcs[name], [variable.identifier for variable in structure.loops(Site(name, 0))]
    kept = tuple(each for each in func.storage if not isinstance(each, ReorderStorage | AlignStorage))
    order = (first, *(loop for loop in loops if loop != first))
    return replace(func, storage=kept if [*order] == loops else (*kept, ReorderStorage(order)))


def _other_reads(stage: StageShape, loop: str) -> tuple[int, int]:
    """How many reads that no data decide move with a loop, and how many do not, as those that say where to look."""
    moves = [
        any(loop in (dimension.slopes or {}) for dimension in read.dimensions)
        for read in stage.reads
        if not any(dimension.is_of_data for dimension in read.dimensions)
    ]
    return sum(moves), len(moves) - sum(moves)


def _is_wanted(structure: DraftStructure, name: str, place: int) -> bool:
    """Whether readers say themselves which values of an argument they need, and not data, which need few of them."""
    return not any(read.dimensions[place].is_of_data for _, read in structure.readers.get(name, ()))


def _read(structure: DraftStructure, site: Site, loop: str) -> Iterator[tuple[str, int]]:
    """The Funcs that a stage reads where data say, and along one of their arguments with a loop."""
    for called, read in structure.reads[site].items():
        along = [place for place, dimension in enumerate(read.dimensions) if dimension.follows(loop)]
        if len(along) == 1 and any(dimension.is_of_data for dimension in read.dimensions):
            yield called, along[0]


def _still(structure: DraftStructure, site: Site, loop: str) -> Iterator[str]:
    for called, read in structure.reads[site].items():
        if structure.is_inlined(called) and not any(dimension.follows(loop) for dimension in read.dimensions):
            yield called
