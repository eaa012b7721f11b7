"""The SDK's own techniques and model keep to what is asked of packages, and the checks see what does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from halide_autotune.autotune_loop.search.models.model import ScheduleCostModel
from halide_autotune.autotune_loop.search.models.population import Population
from halide_autotune.autotune_loop.search.models.schedule_model import Features, ScheduleModel
from halide_autotune.autotune_loop.search.techniques.annealing import Annealing
from halide_autotune.autotune_loop.search.techniques.evolution import Evolution
from halide_autotune.autotune_loop.search.techniques.pattern import PatternSearch
from halide_autotune.autotune_loop.search.techniques.starts import Starts
from halide_autotune.autotune_loop.search.techniques.technique import Proposal, Technique
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.remote.open import open_link
from halide_autotune.sdk.contracts.sample_population import PIPELINE
from halide_autotune.sdk.settings import Settings
from halide_autotune.sdk.testing import check_model, check_notifier, check_technique, check_transport
from halide_autotune.targets.errors import UsageError
from tests.contract.local_link import LocalLink
from tests.drafted_pipelines import SHAPES
from tests.remote_board import AdbBoard, RemoteBoard


class BuiltIn:
    """The built-in model, which learns when it is made."""

    def fit(self, timed: Sequence[Features], times_ms: Sequence[float]) -> None:
        self.model = ScheduleModel(timed, times_ms)

    def predict(self, schedules: Sequence[Features]) -> Any:
        return self.model.predict(schedules) if schedules else ([], [])


@pytest.mark.parametrize("technique", [Starts, Evolution, Annealing, PatternSearch])
def test_the_techniques_that_are_always_there(technique: Callable[[], Technique]) -> None:
    check_technique(technique)


def test_the_model_that_is_always_there() -> None:
    check_model(BuiltIn)


def test_the_pipeline_of_the_checks_is_as_it_is_described_today() -> None:
    """tests/unit/autotune_loop/draft/test_same_code.py holds the other one to what the plug-in writes."""
    assert PIPELINE.read_bytes() == (SHAPES / "separable_filter.json").read_bytes()


class Once(Evolution):
    """It keeps that it was asked."""

    asked = False

    def propose(self, population: Population, count: int, source: Random) -> Iterator[Proposal]:
        found = [] if self.asked else list(super().propose(population, count, source))
        self.asked = True
        return iter(found)


class ByLuck(Evolution):
    def propose(self, population: Population, count: int, source: Random) -> Iterator[Proposal]:
        return super().propose(population, count, Random())


class Nothing:
    def propose(self, population: Population, count: int, source: Random) -> Iterator[Proposal]:
        return iter(())


class Known:
    def propose(self, population: Population, count: int, source: Random) -> Iterator[Proposal]:
        return iter(Proposal(one.draft) for one in population.tried)


class Stranger(Evolution):
    def propose(self, population: Population, count: int, source: Random) -> Iterator[Proposal]:
        return iter(Proposal(one.draft, ("nobody",)) for one in super().propose(population, count, source))


class LacksFunc(Evolution):
    def propose(self, population: Population, count: int, source: Random) -> Iterator[Proposal]:
        for one in super().propose(population, count, source):
            yield Proposal(one.draft.without_func(next(iter(population.names.shapes))))


@pytest.mark.parametrize(
    ("technique", "promise"),
    [
        (Once, "the same for the same population"),
        (ByLuck, "the same for the same population"),
        (Nothing, "must yield a schedule that was not timed"),
        (Known, "must yield a schedule that was not timed"),
        (Stranger, "must be symbols of population.tried"),
        (LacksFunc, "must have every Func of population.names"),
    ],
)
def test_a_technique_that_does_not_keep_to_something_is_told_to_what(
    technique: Callable[[], Technique], promise: str
) -> None:
    with pytest.raises(AssertionError, match=promise):
        check_technique(technique)


class Flat(BuiltIn):
    def predict(self, schedules: Sequence[Features]) -> Any:
        return np.zeros(len(schedules)), np.zeros(len(schedules))


class Backwards(BuiltIn):
    def predict(self, schedules: Sequence[Features]) -> Any:
        means, deviations = super().predict(schedules)
        return -np.asarray(means), deviations


class Remembers(BuiltIn):
    def __init__(self) -> None:
        self.seen: list[tuple[Features, float]] = []

    def fit(self, timed: Sequence[Features], times_ms: Sequence[float]) -> None:
        self.seen += zip(timed, times_ms, strict=True)
        super().fit([each for each, _ in self.seen], [time_ms for _, time_ms in self.seen])


class SameFuncs(BuiltIn):
    def predict(self, schedules: Sequence[Features]) -> Any:
        np.array([[*each.values()] for each in schedules], dtype=float)
        return super().predict(schedules)


@pytest.mark.parametrize(
    ("model", "promise"),
    [
        (Flat, "longer times to most of the slower"),
        (Backwards, "longer times to most of the slower"),
        (Remembers, "must forget"),
        (SameFuncs, r"predict must not fail with \d+ schedules; it does: ValueError"),
    ],
)
def test_a_model_that_does_not_keep_to_something_is_told_to_what(
    model: Callable[[], ScheduleCostModel], promise: str
) -> None:
    with pytest.raises(AssertionError, match=promise):
        check_model(model)


def test_a_program_that_does_not_take_a_failure_is_told(tmp_path: Path) -> None:
    tell = tmp_path / "tell"
    tell.write_text('#!/bin/sh\ngrep -q \'"outcome"\' || { echo "no outcome"; exit 1; }\n')
    tell.chmod(0o755)
    with pytest.raises(
        AssertionError, match="told of a run that failed; it does not: it exited with code 1: no outcome"
    ):
        check_notifier(tell)


def test_an_entry_point_that_is_not_there_is_told() -> None:
    with pytest.raises(UsageError, match="There is no technique 'nothing'"):
        check_technique("nothing")
    with pytest.raises(UsageError, match="There is no model 'nothing'"):
        check_model("nothing")


# Transports


@pytest.mark.toolchain
def test_the_links_that_are_always_there(
    board: RemoteBoard, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDK_CACHE_DIR", str(settings.cache_folder))
    folder = "/data/local/tmp" if isinstance(board, AdbBoard) else str(tmp_path)
    check_transport(lambda name, url: open_link(name, board.place.address, board.connections), "board://", folder)


class Shortens(LocalLink):
    """It drops the last byte of what it copies."""

    def get(self, path: str, destination: Path) -> None:
        super().get(path, destination)
        destination.write_bytes(destination.read_bytes()[:-1])


class Invents(LocalLink):
    def get(self, path: str, destination: Path) -> None:
        destination.touch()
        if (self.home / path).exists():
            super().get(path, destination)


class Silent(LocalLink):
    def stream(self, words: Sequence[str]) -> Iterator[bytes]:
        return (block for block in super().stream(words) if block)


class Quiet(LocalLink):
    """It says nothing of what is not there."""

    def stream(self, words: Sequence[str]) -> Iterator[bytes]:
        return (block for block in super().stream(words) if b"not found" not in block)


@pytest.mark.parametrize(
    ("link", "promise"),
    [
        (Shortens, "must give back the 300000 bytes of a file"),
        (Invents, "get must raise DeviceTrouble where there is no file"),
        (Silent, "must yield b'' at least every"),
        (Quiet, "a program that is not there"),
    ],
)
def test_a_link_that_does_not_keep_to_something_is_told_to_what(
    link: type[LocalLink], promise: str, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match=promise):
        check_transport(lambda name, url: link(tmp_path / "board"), "local://board")


def test_a_link_to_nowhere_is_told(tmp_path: Path) -> None:
    def lost(name: str, url: str) -> LocalLink:
        link = LocalLink(tmp_path)
        link.refuse.append(DeviceTrouble(TroubleKind.UNREACHABLE, "Nobody is there."))
        return link

    with pytest.raises(AssertionError, match="it does not: Nobody is there"):
        check_transport(lost, "local://board")
