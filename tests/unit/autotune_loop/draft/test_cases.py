"""Outputs whose channels are compiled apart, as drafts and as schedules."""

from __future__ import annotations

from dataclasses import replace
from textwrap import indent

import pytest

from halide_autotune.autotune_loop.draft.cases import cases_of
from halide_autotune.autotune_loop.draft.from_schedule import draft_of
from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.structure import DraftStructure
from halide_autotune.autotune_loop.draft.to_schedule import schedule_of
from halide_autotune.autotune_loop.schedule.as_json import parse_json, print_json
from halide_autotune.autotune_loop.schedule.check import check_schedule
from halide_autotune.autotune_loop.schedule.directives import Bound
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.schedule.print_header import print_header
from halide_autotune.autotune_loop.schedule.text import EARLIER_PARAMETER_NAMED_CPP, PARAMETER_NAMED_CPP
from halide_autotune.autotune_loop.schedule.values import ROOT
from halide_autotune.autotune_loop.sketches.sketches import sketches
from tests.drafted_pipelines import channels, func, pipeline, plain_draft, read


def inlined(names: PipelineNames) -> Draft:
    return plain_draft(names, colour=None)


def with_cases(names: PipelineNames, *cases: str) -> Draft:
    draft = inlined(names)
    return draft.with_func("output", replace(draft.funcs["output"], cases=cases))


def cases(names: PipelineNames, draft: Draft, name: str = "output") -> tuple[str, ...]:
    return cases_of(DraftStructure(draft, names), name)


def test_cases_are_those_of_what_is_inlined_into_an_output() -> None:
    names = channels()
    assert cases(names, inlined(names)) == ("z",)
    assert cases(names, plain_draft(names)) == (), "what has loops of its own is computed before"
    assert cases(names, plain_draft(names), "colour") == (), "no caller says how much of it there is"


def test_funcs_that_are_read_in_several_ways_are_looked_at_once() -> None:
    """There are 2**40 ways through these."""
    point = (("x", 1), ("y", 1), ("z", 1))
    sizes, chain = (64, 48, 3), [func("first", (64, 48, 3))]
    chain = [replace(chain[0], stages=(replace(chain[0].stages[0], cases=("z",)),))]
    for step in range(40):
        before = chain[-1].name
        chain.append(func(f"change{step}", sizes, read(before, *point)))
        chain.append(func(f"value{step}", sizes, read(before, *point), read(f"change{step}", *point)))
    names = pipeline(*chain, func("output", sizes, read(chain[-1].name, *point)))
    drafts = [sketch.draft for sketch in sketches(names, 4)]
    assert {cases(names, draft) for draft in drafts} == {("z",)}


@pytest.mark.parametrize(
    "names",
    [
        channels(cases=()),
        channels(cases=("x",)),
        channels(extent=5),
        channels(extent=1),
        channels(bounded=("z",)),
        channels(value_bytes=8),
        channels(is_extern=True),
    ],
    ids=["all alike", "along rows", "many channels", "one channel", "the generator promises it", "a tuple", "extern"],
)
def test_without_few_channels_of_their_own_kinds_there_are_none(names: PipelineNames) -> None:
    assert cases(names, inlined(names)) == ()


def test_a_schedule_that_promises_the_channels_needs_no_cases() -> None:
    names = channels()
    draft = inlined(names)
    promised = replace(draft.funcs["output"], storage=(Bound("z", 0, 3),))
    assert cases(names, draft.with_func("output", promised)) == ()


def test_what_is_compiled_once_more_is_printed_and_read() -> None:
    names = channels()
    draft = with_cases(names, "z")
    made = schedule_of(draft, names, "f")
    check_schedule(made)
    header = print_header(made, "f")
    assert "output.specialize(((output_min_2 == 0) && (output_extent_2 == 3)));" in header
    assert parse_schedule(header) == made == parse_json(print_json(made))
    assert draft_of(made, names) == draft
    assert not draft_of(made, names).parameters, "they are made anew"


def test_two_arguments_are_told_together() -> None:
    names = channels(extent=3, cases=("y", "z"))
    draft = with_cases(names, "y", "z")
    made = schedule_of(draft, names, "f")
    check_schedule(made)
    assert len(made.parameters) == 4
    assert draft_of(made, names) == draft


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("_min_2 == 0", "_min_2 == 1"),
        ("_extent_2 == 3", "_extent_2 == 4"),
        (") && (", ") || ("),
        ("_min_2 == 0", "_min_2 > 0"),
    ],
)
def test_any_other_condition_is_kept_as_it_is(old: str, new: str) -> None:
    names = channels()
    header = print_header(schedule_of(with_cases(names, "z"), names, "f"), "f")
    assert old in header
    changed = parse_schedule(header.replace(old, new))
    draft = draft_of(changed, names)
    assert draft.funcs["output"].frozen and not draft.funcs["output"].cases
    assert draft.parameters == changed.parameters
    assert print_header(schedule_of(draft, names, "f"), "f").count(new) == 1


def test_parameters_that_others_name_are_kept() -> None:
    names = channels()
    header = print_header(schedule_of(with_cases(names, "z"), names, "f"), "f")
    name = "source"
    start = f"    {name}\n        .compute_root()"
    assert start in header
    more = f"    {name}.specialize((output_extent_2 == 3));\n"
    place = header.index("    colour") if "    colour" in header else header.rindex("}\n")
    changed = parse_schedule(header[:place] + more + header[place:])
    draft = draft_of(changed, names)
    assert draft.funcs["output"].cases == ("z",) and draft.funcs[name].frozen
    assert [each.field for each in draft.parameters] == ["extent.2"]
    check_schedule(schedule_of(draft, names, "f"))


def test_what_is_at_the_root_stays_there() -> None:
    names = channels()
    assert draft_of(schedule_of(with_cases(names, "z"), names, "f"), names).funcs["output"].compute == ROOT


def test_headers_of_earlier_versions_are_read() -> None:
    """They look an output up by its name alone, which has a number behind it for a second target."""
    names = channels()
    schedule = schedule_of(with_cases(names, "z"), names, "f")
    header = print_header(schedule, "f")
    now, before = (indent(text, "    ") for text in (PARAMETER_NAMED_CPP, EARLIER_PARAMETER_NAMED_CPP))
    assert now in header and now != before
    for text in (header, header.replace(now, before)):
        assert parse_schedule(text) == schedule
