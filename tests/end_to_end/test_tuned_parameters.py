"""Runs that tune the numbers of a schedule written by hand, with the simulated clock: equal runs have equal times."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.autotune_loop.events import Event, SampleFailed, event_to_dict
from halide_autotune.autotune_loop.run.result import Outcome, TuneResult
from halide_autotune.autotune_loop.shipping.ship_manifest import read_manifest
from halide_autotune.autotune_loop.store.sample_file import read_sample
from halide_autotune.sdk import check_shipped, ship
from halide_autotune.sdk.main import main
from halide_autotune.sdk.options.ship_options import ShipOptions
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import GeneratorError, UsageError
from halide_autotune.targets.values.options import with_values
from halide_autotune.weights.network import Network
from tests.end_to_end.conftest import Tune
from tests.end_to_end.run_files import rows

pytestmark = pytest.mark.skipif(not shutil.which("qemu-x86_64"), reason="qemu-x86_64 is not installed")

# The best is known: long vectors, narrow numbers, and none of the passes that do nothing for the result.
BY_HAND = """
import halide as hl

x, y = hl.Var("x"), hl.Var("y")


@hl.generator(name="by_hand")
class ByHand(hl.Generator):
    vector = hl.GeneratorParam(1)
    narrow = hl.GeneratorParam(False)
    passes = hl.GeneratorParam(2)
    input = hl.InputBuffer(hl.UInt(16), 2)
    output = hl.OutputBuffer(hl.UInt(16), 2)

    def generate(self):
        stages = [hl.Func(f"stage_{index}") for index in range(self.passes)]
        value = self.input
        for stage in stages:
            stage[x, y] = value[x, y]
            value = stage
        third = value[x, y] / 3 if self.narrow else hl.u16(hl.f64(value[x, y]) / 3)
        self.output[x, y] = third + 1
        self.input.set_estimates([(0, 256), (0, 64)])
        self.output.set_estimates([(0, 256), (0, 64)])
        assert self.vector != 3, "no vectors of three"
        for func in (*stages, self.output):
            if self.vector > 1:
                func.vectorize(x, self.vector)
        for stage in stages:
            stage.compute_root()
"""
TUNED = {"vector": "1,3,4,16", "narrow": "true,false", "passes": "0..2"}
BEST = {"vector": "16", "narrow": "true", "passes": "0"}


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("generator") / "by_hand.py"
    source.write_text(BY_HAND)
    return source


@pytest.fixture(scope="module")
def heard() -> list[Event]:
    return []


@pytest.fixture(scope="module")
def tuned_run(tune: Tune, by_hand: Path, heard: list[Event], tmp_path_factory: pytest.TempPathFactory) -> TuneResult:
    """All sets of a small space."""
    return tune(
        str(by_hand),
        target="x86-64",
        device="qemu",
        tune=TUNED,
        restrict=["passes < 2 or vector < 16"],
        rounds=9,
        run_folder=tmp_path_factory.mktemp("tuned") / "run",
        listen=heard.append,
    )


def test_the_known_best_wins_and_every_set_is_timed_once(tuned_run: TuneResult) -> None:
    best = tuned_run.best
    assert tuned_run.outcome is Outcome.EXHAUSTED and tuned_run.clock == "simulated"
    assert dict(best.tuned_parameters) == BEST and best.confirmed and best.header is None
    assert best.published.speed_up is not None
    assert best.published.speed_up.text.startswith(f"{best.speed_up:.3f} times as fast as the default parameters (95 %")
    assert best.default_description == "own schedule, vector=1 narrow=false passes=2"
    sets = [text for (text,) in rows(tuned_run.run_folder, "SELECT parameters FROM candidates ORDER BY candidate")]
    assert len(sets) == len({tuple(sorted(json.loads(text).items())) for text in sets}) == 4 * 2 * 3 - 2
    assert json.loads(sets[0]) == {"vector": "1", "narrow": "false", "passes": "2"}
    # Outputs were compared, whatever was timed.
    assert rows(tuned_run.run_folder, "SELECT DISTINCT output_checked FROM measurements WHERE purpose='sample'") == [
        (1,)
    ]


def test_a_set_that_cannot_be_built_is_a_failure_of_its_own(tuned_run: TuneResult, heard: list[Event]) -> None:
    assert tuned_run.totals.failures == {"build: failed": 6}
    failed = [event for event in heard if isinstance(event, SampleFailed)]
    assert len(failed) == 6 and all("no vectors of three" in event.message for event in failed)


def test_what_is_published_is_the_set(tuned_run: TuneResult) -> None:
    best, samples = tuned_run.best, tuned_run.run_folder / "samples"
    assert best.parameters_file == samples / "best.by_hand.parameters.toml"
    assert best.parameters_file.read_text() == 'parameters = ["vector=16", "narrow=true", "passes=0"]\n'
    assert (samples / best.sample / "by_hand.parameters.toml").read_text() == best.parameters_file.read_text()
    assert "vector=16" in (samples / "best.by_hand.benchmark.txt").read_text()
    told = json.loads(json.dumps(tuned_run.to_dict()))
    assert told["tuned"][0]["tuned_parameters"] == BEST and told["tuned"][0]["header"] is None
    assert told["tuned"][0]["speed_up_than"] == "default parameters"


def test_the_report_shows_times_against_each_parameter(
    tuned_run: TuneResult, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "report.html"
    assert main(["report", str(tuned_run.run_folder), "-o", str(page), "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["tasks"]
    assert told["tuned_parameters"] == BEST and told["timed"] == 16
    text = page.read_text()
    assert all(f"<b>Time against {name}</b>" in text for name in TUNED)
    assert "vector=16 narrow=true passes=0</p>" in text
    assert '<dt>timed</dt><dd class="large">16</dd><dd>parameter sets</dd>' in text
    assert main(["report", str(tuned_run.run_folder), "-o", str(page)]) == 0
    shown = capsys.readouterr().out
    assert "16 parameter sets timed" in shown and "parameters vector=16 narrow=true passes=0" in shown


def test_events_have_the_parameters(heard: list[Event]) -> None:
    events: list[dict[str, Any]] = [event_to_dict(event) for event in heard]
    measured = [event for event in events if event["event"] == "sample_measured"]
    improved = [event for event in events if event["event"] == "best_improved"]
    assert len(measured) == 16 and all(event["parameters"].keys() == TUNED.keys() for event in measured)
    assert [event["origin"] for event in measured].count("default parameters") == 1
    assert improved[-1]["parameters"] == BEST


def test_equal_runs_choose_and_find_the_same_and_resuming_goes_on(
    tune: Tune, by_hand: Path, tmp_path: Path, tuned_run: TuneResult, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: dict[str, Any] = {
        "target": "x86-64",
        "device": "qemu",
        "tune": TUNED,
        "restrict": ["passes < 2 or vector < 16"],
        "run_folder": tmp_path / "run",
    }
    first = tune(str(by_hand), rounds=1, **asked)
    query = "SELECT symbol, parameters FROM candidates ORDER BY candidate"
    begun = rows(first.run_folder, query)
    assert begun == rows(tuned_run.run_folder, query)[: len(begun)] and len(begun) == 5
    assert main(["autotune", "--resume", str(first.run_folder), "--tune", "vector=1,2"]) == 2
    assert "This run was made with --tune vector=1,3,4,16" in capsys.readouterr().err
    resumed = tune(str(by_hand), resume=True, run_folder=first.run_folder, rounds=9)
    assert resumed.outcome is Outcome.EXHAUSTED and dict(resumed.best.tuned_parameters) == BEST
    sets = [text for (text,) in rows(first.run_folder, "SELECT parameters FROM candidates")]
    assert len(sets) == len(set(sets)) == 22


def test_a_generator_whose_defaults_do_not_work_says_why(tune: Tune, by_hand: Path, tmp_path: Path) -> None:
    source = tmp_path / "broken.py"
    source.write_text(BY_HAND.replace("vector = hl.GeneratorParam(1)", "vector = hl.GeneratorParam(3)"))
    with pytest.raises(
        GeneratorError,
        match="The own schedule of generator by_hand fails with its default parameters: .*no vectors of three",
    ):
        tune(str(source), target="x86-64", device="qemu", tune={"vector": "4,8"}, run_folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.toolchain
def test_the_set_ships_as_files_that_know_where_they_come_from(
    tuned_run: TuneResult, by_hand: Path, settings: Settings, tmp_path: Path
) -> None:
    folder = tmp_path / "shipped"
    manifest = ship([tuned_run.run_folder], folder, settings=settings)
    assert manifest == read_manifest(folder) and not manifest.schedules
    (shipped,) = manifest.parameter_sets
    assert dict(shipped.tuned) == BEST and shipped.provenance["confirmed"] is True
    stem = "by_hand.x86-64.parameters"
    texts = {path.suffix: path.read_text() for path in folder.glob(f"{stem}.*")}
    given = "vector=16 narrow=true passes=0"
    assert texts[".cmake"].endswith(f"\nset(by_hand_x86_64_PARAMS {given})\n")
    assert texts[".txt"].endswith(f"\n{given}\n")
    assert tomllib.loads(texts[".toml"]) == {"parameters": given.split()}
    assert all(f"# tuned         {given}, the default vector=1 narrow=false passes=2\n" in t for t in texts.values())
    assert all("times as fast as the default parameters" in text for text in texts.values())

    assert check_shipped(folder, generators=[str(by_hand)], settings=settings).problems == ()
    renamed = tmp_path / "by_hand.py"
    renamed.write_text(BY_HAND.replace("narrow", "small"))
    (problem,) = check_shipped(folder, generators=[str(renamed)], settings=settings).problems
    assert problem == f"{stem}.toml: generator by_hand has no parameter narrow any more."
    renamed.write_text(BY_HAND.replace("third + 1", "third + 2"))
    (problem,) = check_shipped(folder, generators=[str(renamed)], settings=settings).problems
    assert problem == f"{stem}.toml: the algorithm of generator by_hand has changed. Tune again."
    (folder / f"{stem}.txt").write_text("vector=4\n")
    assert f"{stem}.txt was changed after it was shipped." in check_shipped(folder, settings=settings).problems


@pytest.mark.parametrize("option", ["play_off", "guard"])
def test_what_is_only_for_schedules_is_refused(
    tuned_run: TuneResult, settings: Settings, tmp_path: Path, option: str
) -> None:
    with pytest.raises(UsageError, match=f"--{option.replace('_', '-')} is for schedules; .* has tuned parameters"):
        ship(
            [tuned_run.run_folder], tmp_path / "shipped", with_values(ShipOptions(), {option: True}), settings=settings
        )
    assert not (tmp_path / "shipped").exists()


@pytest.fixture(scope="module")
def run_of_both(tune: Tune, by_hand: Path, tmp_path_factory: pytest.TempPathFactory) -> TuneResult:
    """Parameter sets and schedules in turns; a searched schedule wins, because the generator's own has no vectors."""
    return tune(
        str(by_hand),
        target="x86-64",
        device="qemu",
        tune={"narrow": "true,false", "passes": "0..2"},
        search_too=True,
        rounds=5,
        run_folder=tmp_path_factory.mktemp("both") / "run",
    )


def test_schedules_are_searched_with_parameters_of_the_space(run_of_both: TuneResult) -> None:
    folder = run_of_both.run_folder
    chosen = rows(folder, "SELECT round, origin, parameters FROM candidates ORDER BY candidate")
    by_round = {index: {origin for each, origin, _ in chosen if each == index} for index, _, _ in chosen}
    assert by_round[0] == {"default parameters", "parameter search"}
    assert by_round[2] == {"parameter search"}
    # In the fifth round the sets are used up.
    assert all(by_round[index] <= {"full beam search", "random search"} for index in by_round if index not in (0, 2))
    searched = {(index, text) for index, origin, text in chosen if origin.endswith("search") and "param" not in origin}
    assert len({index for index, _ in searched}) == len(searched), "a round searches with one set"
    own = [text for _, origin, text in chosen if "parameter" in origin]
    assert len(own) == len(set(own)) == 6
    # Samples of other parameters are of another pipeline to the cost model.
    samples = {path.parts[-3]: read_sample(path, Network.ADAMS2019) for path in folder.rglob("*.sample")}
    sets = {f"batch_{index}_0": text for index, text in searched}
    pipelines = {(sets[name], sample.pipeline_id) for name, sample in samples.items()}
    assert len(pipelines) == len({text for text, _ in pipelines}) == len({number for _, number in pipelines})


def test_the_winners_schedule_and_parameters_are_published_and_ship(
    run_of_both: TuneResult, settings: Settings, tmp_path: Path
) -> None:
    best, samples = run_of_both.best, run_of_both.run_folder / "samples"
    assert best.header == samples / "best.by_hand.schedule.h" and best.header.is_file()
    assert best.parameters_file == samples / "best.by_hand.parameters.toml" and best.parameters_file.is_file()
    assert best.confirmed and best.speed_up is not None and best.speed_up > 2
    assert best.published.speed_up is not None and best.published.speed_up.than == "default parameters"
    values = dict(best.tuned_parameters)
    assert tomllib.loads(best.parameters_file.read_text())["parameters"] == [f"{k}={v}" for k, v in values.items()]

    manifest = ship([run_of_both.run_folder], tmp_path / "shipped", with_values(ShipOptions(), {"no_sizes": True}))
    (schedule,), (parameters,) = manifest.schedules, manifest.parameter_sets
    assert dict(schedule.parameters) == dict(parameters.tuned) == values
    assert schedule.provenance == parameters.provenance
    given = " ".join(f"{name}={value}" for name, value in values.items())
    assert schedule.provenance["tuned_parameters"] == given and "weights_sha256" in schedule.provenance
    assert f"// tuned         {given}, the default " in (tmp_path / "shipped" / schedule.header).read_text()


def test_a_run_of_both_goes_on(run_of_both: TuneResult, tune: Tune, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(run_of_both.run_folder, tmp_path / "run"))
    resumed = tune("", resume=True, run_folder=folder, rounds=6)
    assert resumed.outcome in (Outcome.FINISHED, Outcome.EXHAUSTED)
    assert resumed.totals.samples_timed >= run_of_both.totals.samples_timed
    assert resumed.best.header is not None and resumed.best.tuned_parameters
    identities = rows(folder, "SELECT schedule_sha256 FROM candidates")
    assert len(identities) == len(set(identities))
    assert main(["autotune", "--replay", str(folder)]) == 1
