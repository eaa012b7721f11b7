"""Whether searches find faster schedules with trained weights: of programs that judge, and timed once for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from halide_autotune.autotune_loop.store.run_record import FILE_NAME as RUN_FILE_NAME
from halide_autotune.autotune_loop.training.recorded_programs import RecordedProgram
from halide_autotune.sdk.api.weights import search_trial
from halide_autotune.sdk.api.weights.recording_runs import RecordingRuns
from halide_autotune.sdk.api.weights.search_trial import search_gain
from halide_autotune.targets.errors import BudgetError, GeneratorError, SdkError
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.weights.network import Network
from halide_autotune.weights.weights_file import Weights, read_weights, weights_sha256
from tests.unit.weights.test_weights_file import random_weights

EARLIER, TRAINED = random_weights(Network.ADAMS2019, 1), random_weights(Network.ADAMS2019, 2)
# Of these, 4, 9 and 14 judge.
PROGRAMS = [RecordedProgram(seed, 8, (), (), ()) for seed in range(15)]


@dataclass
class Runs:
    """Runs whose searches find a schedule of each program, of so many milliseconds with each weights."""

    path: Path
    times_ms: dict[str, list[float]]
    fails: type[SdkError] | None = None
    stop: StopSignal = field(default_factory=StopSignal)
    asked: list[tuple[str, list[int]]] = field(default_factory=list)
    timed: dict[str, list[RecordedProgram]] = field(default_factory=dict)

    @property
    def training(self) -> object:
        return SimpleNamespace(path=self.path)

    def time(self, folder: Path, seeds: Sequence[int], weights: str, batches: object, budget_s: float) -> bool:
        sha256 = weights_sha256(read_weights(Path(weights)))
        self.asked.append((sha256, list(seeds)))
        if self.fails:
            raise self.fails("It failed.")
        folder.mkdir(exist_ok=True)
        (folder / RUN_FILE_NAME).touch()
        found = zip(seeds, self.times_ms[sha256], strict=False)
        samples: dict[int, Any] = {
            seed: (SimpleNamespace(runtime_ms=2 * ms), SimpleNamespace(runtime_ms=ms)) for seed, ms in found
        }
        self.timed[folder.name] = [RecordedProgram(seed, 2, each, (), ()) for seed, each in samples.items()]
        return True

    def recorded(self, folders: Sequence[Path], network: Network) -> list[RecordedProgram]:
        return self.timed[folders[0].name]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    made = Runs(tmp_path, {weights_sha256(EARLIER): [4.0, 8.0, 2.0], weights_sha256(TRAINED): [2.0, 8.0, 2.0]})
    monkeypatch.setattr(search_trial, "recorded_programs", made.recorded)
    return made


def gain(runs: Runs, trained: Weights = TRAINED) -> float | None:
    return search_gain(cast(RecordingRuns, runs), EARLIER, trained, PROGRAMS)


def test_the_best_of_judging_programs_are_compared(runs: Runs) -> None:
    assert gain(runs) == pytest.approx(2 ** (1 / 3))
    assert runs.asked == [(weights_sha256(EARLIER), [4, 9, 14]), (weights_sha256(TRAINED), [4, 9, 14])]
    assert not [*runs.path.glob("*.weights")], "the run has kept its own copy"


def test_what_the_earlier_weights_find_is_timed_once(runs: Runs) -> None:
    gain(runs)
    other = random_weights(Network.ADAMS2019, 3)
    runs.times_ms[weights_sha256(other)] = [4.0, 8.0, 4.0]
    assert gain(runs, other) == pytest.approx(0.5 ** (1 / 3))
    assert [sha256 for sha256, _ in runs.asked] == [weights_sha256(each) for each in (EARLIER, TRAINED, other)]
    kept = {folder.name for folder in runs.path.glob("trial_*")}
    assert kept == {f"trial_3_{weights_sha256(each)[:16]}" for each in (EARLIER, other)}, "what is not needed goes"


def test_only_programs_that_both_have_timed_count(runs: Runs) -> None:
    runs.times_ms[weights_sha256(TRAINED)] = [2.0]
    assert gain(runs) == pytest.approx(2.0)


def test_a_folder_that_a_killed_process_has_left_empty_is_used(runs: Runs) -> None:
    (runs.path / f"trial_3_{weights_sha256(EARLIER)[:16]}").mkdir()
    assert gain(runs) == pytest.approx(2 ** (1 / 3))


@pytest.mark.parametrize("error", [BudgetError, GeneratorError])
def test_without_a_time_nothing_is_said(runs: Runs, error: type[SdkError]) -> None:
    runs.fails = error
    assert gain(runs) is None and not [*runs.path.glob("*.weights")]
    runs.stop.set()
    runs.asked.clear()
    assert gain(runs) is None and runs.asked == [], "the user has stopped it"
    assert search_gain(cast(RecordingRuns, runs), EARLIER, TRAINED, PROGRAMS[:4]) is None, "none judges"
