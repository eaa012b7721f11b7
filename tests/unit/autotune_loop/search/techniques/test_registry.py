"""Techniques by name, and what comes of a package's; what packages may do wrong is tested with `ExtensionPoint`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from halide_autotune.autotune_loop.search.models.population import Population
from halide_autotune.autotune_loop.search.techniques.evolution import Evolution
from halide_autotune.autotune_loop.search.techniques.registry import (
    TECHNIQUES,
    PlugInTechnique,
    load_techniques,
)
from halide_autotune.autotune_loop.search.techniques.technique import Proposal
from halide_autotune.autotune_loop.specification.options import SearchOptions
from halide_autotune.targets.errors import UsageError
from tests.installed_package import install_package
from tests.timed_drafts import learnt

LAB = "class Lab:\n    def propose(self, population, count, source):\n        return iter(())\n"


def install(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    install_package(folder, "lab", {TECHNIQUES.group: {name: "lab_registry:Lab"}}, {"lab_registry": LAB}, monkeypatch)


def test_those_that_are_always_there_need_no_package() -> None:
    asked = SearchOptions(technique=("sampling", "sketches", "evolution"))
    assert list(load_techniques(asked)) == ["sketches", "evolution"]


def test_a_package_adds_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "lab", monkeypatch)
    loaded = load_techniques(SearchOptions(technique=("evolution", "lab")))
    assert list(loaded) == ["evolution", "lab"]
    assert list(loaded["lab"].propose(learnt(3), 1, Random(0))) == []


def test_a_package_cannot_take_the_place_of_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "evolution", monkeypatch)
    with pytest.raises(UsageError, match="The technique 'evolution' .* has the name of a built-in one"):
        load_techniques(SearchOptions(technique=("evolution",)))
    assert list(load_techniques(SearchOptions(technique=("sketches",)))) == ["sketches"]


def test_an_unknown_technique_or_model_says_which_there_are() -> None:
    with pytest.raises(UsageError, match="no technique 'evolutoin'; the nearest is 'evolution'") as caught:
        load_techniques(SearchOptions(technique=("evolutoin",)))
    assert "sampling, sketches, evolution, annealing, pattern" in caught.value.next_step
    with pytest.raises(UsageError, match="There is no model 'gaussian'") as caught:
        load_techniques(SearchOptions(model="gaussian"))
    names = "lowered, trees, trees_of_times, tree_gru, tree_gru_of_times, ensemble, gaussian_process"
    assert f"Name one of {names}" in caught.value.next_step


class Gives:
    """Somebody's technique, which gives these things."""

    def __init__(self, *things: Any) -> None:
        self.things = things

    def propose(self, population: Population, count: int, source: Random) -> Iterator[Any]:
        return iter(self.things)


def test_lists_of_moves_become_what_the_record_takes() -> None:
    known = learnt(3)
    # As a user's technique may give it.
    given: Any = Proposal(known.tried[0].draft, ["a"], ["b"])  # type: ignore[arg-type]
    (made,) = PlugInTechnique(Gives(given), "lab").propose(known, 1, Random(0))
    assert made == Proposal(known.tried[0].draft, ("a",), ("b",))


# The wrong types are the test.
@pytest.mark.parametrize("thing", [None, "a text", Proposal("a text"), replace(Proposal(None), moves=(3,))])  # type: ignore[arg-type]
def test_anything_else_than_proposals_is_named(thing: object) -> None:
    with pytest.raises(TypeError, match="propose"):
        list(PlugInTechnique(Gives(thing), "lab").propose(learnt(3), 1, Random(0)))


def test_moves_that_are_no_texts_are_named() -> None:
    known = learnt(3)
    wrong: Any = Proposal(known.tried[0].draft, moves=(3,))  # type: ignore[arg-type]  # the wrong type is the test
    with pytest.raises(TypeError, match="moves of a Proposal must be texts"):
        list(PlugInTechnique(Gives(wrong), "lab").propose(known, 1, Random(0)))


def test_one_that_proposes_without_end_ends() -> None:
    known = learnt(3)

    class Endless:
        def propose(self, population: Population, count: int, source: Random) -> Iterator[Proposal]:
            return itertools.repeat(Proposal(population.tried[0].draft))

    assert len(list(PlugInTechnique(Endless(), "lab").propose(known, 2, Random(0)))) == 2000


def test_evolution_by_name_is_evolution() -> None:
    known = learnt(60)
    named = load_techniques(SearchOptions(technique=("evolution",)))["evolution"]
    assert list(named.propose(known, 4, Random(3))) == list(Evolution().propose(known, 4, Random(3)))
