"""Where data say which place of a table is read, and what its vectors are along."""

from __future__ import annotations

from dataclasses import replace

import pytest

from halide_autotune.autotune_loop.draft.lookups import Lookup, lookup_at, tables_of, with_values_together
from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site
from halide_autotune.autotune_loop.schedule.directives import AlignStorage, ReorderStorage
from tests.drafted_pipelines import func, lookups, pipeline, plain_draft, read

LOOKED_UP = Site("looked_up", 0)


def found(names: PipelineNames, draft: Draft | None = None) -> Lookup | None:
    return lookup_at(DraftStructure(draft or plain_draft(names), names), LOOKED_UP)


def test_vectors_are_along_what_says_nothing_of_the_place() -> None:
    names = lookups()
    assert found(names, plain_draft(names, place=None)) == Lookup(LOOKED_UP, "z", "z", 12, ("place",))
    assert found(names) == Lookup(LOOKED_UP, "z", "z", 12, ()), "what has loops of its own needs no others"


@pytest.mark.parametrize(
    "names",
    [
        lookups(values=3),
        lookups(read("table", ("x", 1), ("y", 1), ("z", 1))),
        lookups(where=read("place", ("x", 1), ("z", 1))),
        lookups(chosen=None),
        lookups(where=read("place", ("y", 1), ("y", 1))),
    ],
    ids=[
        "few values",
        "no data",
        "each value from a place of its own",
        "few of the values are used",
        "each row at a place of its own",
    ],
)
def test_other_reads_are_no_lookups(names: PipelineNames) -> None:
    assert found(names) is None


def test_an_output_looks_nothing_up() -> None:
    """Its caller says how it is stored."""
    table = func("table", (64, 48, 12))
    looks = (read("table", ("x", 1), (None, 1), ("z", 1)), read("place", ("x", 1), ("y", 1)))
    names = pipeline(table, func("place", (64, 48)), func("output", (64, 48, 12), *looks))
    assert lookup_at(DraftStructure(plain_draft(names), names), Site("output", 0)) is None


@pytest.mark.parametrize(("inlined", "stored"), [((), "table"), (("table",), "source")])
def test_tables_are_what_is_stored(inlined: tuple[str, ...], stored: str) -> None:
    names = lookups()
    structure = DraftStructure(plain_draft(names, **dict.fromkeys(inlined)), names)
    lookup = lookup_at(structure, LOOKED_UP)
    assert lookup is not None
    assert tables_of(structure, lookup, lambda name: not structure.is_inlined(name)) == {stored: 2}
    draft = with_values_together(structure, lookup)
    assert draft is not None
    storage = {name: of.storage for name, of in draft.funcs.items() if of.storage}
    assert storage == {stored: (ReorderStorage(("z", "x", "y")),)}


def test_an_order_that_a_table_had_is_replaced() -> None:
    names = lookups()
    draft = plain_draft(names)
    old = (ReorderStorage(("y", "x", "z")), AlignStorage("y", 16))
    draft = draft.with_func("table", replace(draft.funcs["table"], storage=old))
    structure = DraftStructure(draft, names)
    lookup = lookup_at(structure, LOOKED_UP)
    changed = None if lookup is None else with_values_together(structure, lookup)
    assert changed is not None
    assert changed.funcs["table"].storage == (ReorderStorage(("z", "x", "y")),)


def test_without_a_stored_table_there_is_nothing_to_order() -> None:
    names = lookups()
    structure = DraftStructure(plain_draft(names, table=None, source=None), names)
    lookup = lookup_at(structure, LOOKED_UP)
    assert lookup is not None
    assert with_values_together(structure, lookup) is None
