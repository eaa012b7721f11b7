"""The whole loop on this machine: Python and C++ generators, argument sets, resuming, what must never win."""

from __future__ import annotations

import html
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.autotune_loop.events import BatchDone, Event, Notice, PlayOff, event_to_dict
from halide_autotune.autotune_loop.play_off.verdict import VerdictReason
from halide_autotune.autotune_loop.run.result import Outcome, TuneResult
from halide_autotune.autotune_loop.specification.tuning_task import published_names
from halide_autotune.autotune_loop.store.run_record import read_run_record
from halide_autotune.sdk import resume
from halide_autotune.sdk.main import main
from halide_autotune.sdk.options.generator_spec import GeneratorSpec
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import GeneratorError, SdkError, UsageError
from halide_autotune.targets.process.stop_signal import StopSignal
from tests.end_to_end.conftest import SMALL, TINY_BATCH, Tune
from tests.end_to_end.run_files import check_header, check_run_folder, rows


def test_a_python_generator(python_run: TuneResult) -> None:
    assert python_run.outcome is Outcome.FINISHED and python_run.clock == "wall"
    assert python_run.totals.rounds == 2 and python_run.totals.samples_timed >= 5
    check_run_folder(python_run, "separable_filter", "wall")
    best = python_run.best
    assert best.confirmed and best.header is not None and best.tuned_ms is not None and best.default_ms is not None
    # The default itself is the winner where nothing surely beat it.
    assert best.speed_up is not None and best.speed_up >= 1
    check_header(best.header, "separable_filter")
    assert best.header == python_run.run_folder / "samples" / "best.separable_filter.schedule.h"
    benchmark = best.header.with_name("best.separable_filter.benchmark.txt").read_text()
    assert benchmark.startswith(f"{best.tuned_ms:.6g} ms (wall time")
    json.dumps(python_run.to_dict())


def test_the_play_off_says_who_ships_and_is_on_record(python_run: TuneResult) -> None:
    best = python_run.best
    verdict = best.verdict
    assert verdict is not None and verdict.is_decided and verdict.message and best.tuned is not None
    assert best.sample == "default" or verdict.reason in (VerdictReason.FASTER, VerdictReason.UNOPPOSED)
    assert (best.sample == "default") == (verdict.winner == verdict.baseline == "separable_filter_r0_a0_s0")
    turns = rows(python_run.run_folder, "SELECT symbol, median_ms FROM measurements WHERE purpose = 'play-off'")
    times_ms = [median_ms for symbol, median_ms in turns if symbol == verdict.winner][-verdict.turns :]
    assert best.tuned_ms == pytest.approx(statistics.median(times_ms)), "only the turns that decide count"
    assert best.tuned.range_ms == pytest.approx((min(times_ms), max(times_ms)))
    (kept,) = rows(python_run.run_folder, "SELECT verdict FROM verdicts")
    assert json.loads(kept[0]) == json.loads(json.dumps(verdict.to_dict()))
    assert best.header is not None
    benchmark = best.header.with_name("best.separable_filter.benchmark.txt").read_text()
    assert verdict.message in benchmark and f"{len(times_ms)} processes took" in benchmark


def test_a_winner_is_explained_and_its_report_shows_it(
    python_run: TuneResult, settings: Settings, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        for key, value in settings.environment.items():
            patched.setenv(key, value)
        assert main(["explain", str(python_run.run_folder), "--json"]) == 0
    (told,) = json.loads(capfd.readouterr().out)
    labels = [one["label"] for one in told["schedules"]]
    assert labels == ["the default", "the tuned schedule"]
    for one in told["schedules"]:
        assert one["missing"] == [] and one["call_s"] > 0 and one["argument_bytes"] > 0
        output = next(func for func in one["funcs"] if func["name"] == "output")
        assert output["is_output"] and output["counts"]["points"] >= output["needed_points"] == 192 * 96 * 3
    assert told["limit"] and told["limits"]["bytes_per_s"] > 1e6 and told["limits"]["operations_per_s"] > 1e6
    page = tmp_path / "report.html"
    assert main(["report", str(python_run.run_folder), "-o", str(page)]) == 0
    assert told["limit"] in html.unescape(page.read_text())


def test_every_time_is_recorded_with_what_else_the_machine_did(python_run: TuneResult) -> None:
    recorded = [json.loads(text) for (text,) in rows(python_run.run_folder, "SELECT machine FROM measurements")]
    assert recorded and all(machine["duration_s"] > 0 and machine["own_s"] >= 0 for machine in recorded)


def test_two_argument_sets_of_a_cpp_generator(tune: Tune, examples: Path, tmp_path: Path) -> None:
    events: list[Event] = []
    result = tune(
        str(examples / "separable_filter.cpp"),
        parameters=["width=192"],
        argsets=[["height=96"], ["height=48", "radius=1"]],
        function_name="my_blur",
        rounds=1,
        run_folder=tmp_path / "run",
        listen=events.append,
    )
    assert result.outcome is Outcome.FINISHED
    check_run_folder(result, "my_blur", "wall")
    first, second = result.tuned
    assert dict(first.parameters) == {"width": "192", "height": "96"}
    assert dict(second.parameters) == {"width": "192", "height": "48", "radius": "1"}
    assert first.header and first.header.name == "best.my_blur.schedule.h"
    assert second.header and second.header.name == "best.my_blur_argset1.schedule.h"
    check_header(second.header, "my_blur_argset1")
    ids = rows(tmp_path / "run", "SELECT DISTINCT task FROM candidates ORDER BY 1")
    assert ids == [(0,), (1,)]
    kinds = [event_to_dict(event)["event"] for event in events]
    kinds = [kind for kind in kinds if kind != "notice"]  # where its weights come from, for example
    assert kinds[0] == "run_started" and {"sample_measured", "batch_done", "play_off"} <= set(kinds)
    json.dumps([event_to_dict(event) for event in events])


def test_a_pipeline_of_which_halides_search_knows_few_schedules_ends_when_they_are_used_up(
    tune: Tune, tmp_path: Path
) -> None:
    source = tmp_path / "plain.py"
    source.write_text(
        "import halide as hl\n"
        "x = hl.Var('x')\n"
        "@hl.generator(name='plain')\n"
        "class Plain(hl.Generator):\n"
        "    input = hl.InputBuffer(hl.UInt(8), 1)\n"
        "    output = hl.OutputBuffer(hl.UInt(8), 1)\n"
        "    def generate(self):\n"
        "        self.output[x] = self.input[x] + 1\n"
        "        self.input.set_estimates([(0, 64)])\n"
        "        self.output.set_estimates([(0, 64)])\n"
    )
    result = tune(str(source), rounds=20, technique=["sampling"], run_folder=tmp_path / "run")
    assert result.outcome is Outcome.EXHAUSTED
    check_run_folder(result, "plain", "wall")


def test_a_generator_without_estimates_says_what_to_give(tune: Tune, examples: Path, tmp_path: Path) -> None:
    with pytest.raises(
        GeneratorError, match="gives no estimate for offset and output, so there is no size to tune"
    ) as e:
        tune(str(examples / "broken" / "missing_estimates.py"), run_folder=tmp_path / "run")
    assert "--estimate offset=1 --estimate output=1920x1080" in e.value.next_step


def test_a_generator_that_schedules_itself_is_tuned_and_its_schedule_is_to_be_beaten(
    tune: Tune, examples: Path, tmp_path: Path
) -> None:
    told: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, Notice):
            told.append(event.text)

    source = str(examples / "broken" / "manual_schedule.py")
    result = tune(source, rounds=1, run_folder=tmp_path / "run", listen=listen, ignore_own_schedule=False)
    assert any("schedules 2 Funcs itself (doubled, output)" in text for text in told)
    (tuned,) = result.tuned
    assert tuned.verdict is not None and tuned.verdict.baseline.endswith("_own_a0")
    assert tuned.published.own is not None
    own_header = result.run_folder / "samples" / "own" / "0" / "manual_schedule.schedule.h"
    assert ".vectorize(" in own_header.read_text()


def test_the_schedule_of_a_guarded_generator_is_to_be_beaten(tune: Tune, examples: Path, tmp_path: Path) -> None:
    source = str(examples / "separable_filter.cpp")
    result = tune(source, rounds=1, parameters=SMALL, run_folder=tmp_path / "run", ignore_own_schedule=False)
    (tuned,) = result.tuned
    assert tuned.published.speed_up is not None and tuned.published.speed_up.than == "own"
    assert tuned.published.default is not None and tuned.published.own is not None
    check_run_folder(result, "separable_filter", "wall")


def test_the_size_of_an_input_follows_from_the_outputs(tune: Tune, tmp_path: Path) -> None:
    source = Path(__file__).parents[1] / "unit" / "targets" / "generator" / "generators" / "no_estimates.py"
    result = tune(f"{source}:no_input", rounds=1, run_folder=tmp_path / "run")
    assert result.tuned[0].verdict is not None
    assert read_run_record(result.run_folder).spec.options.inputs.sizes["input"] == "101x100"


def test_a_search_that_needs_too_much_memory_is_stopped_and_told(tune: Tune, examples: Path, tmp_path: Path) -> None:
    with pytest.raises(GeneratorError, match="Generator memory_hog ran out of its 0.5 GiB of memory"):
        tune(str(examples / "broken" / "memory_hog.py"), memory_limit_bytes=2**29, run_folder=tmp_path / "run")


def test_a_search_that_hangs_is_stopped_and_told(tune: Tune, examples: Path, tmp_path: Path) -> None:
    with pytest.raises(GeneratorError, match="Generator hangs did not end within 2 s"):
        tune(str(examples / "broken" / "hangs.py"), search_limit_s=2.0, run_folder=tmp_path / "run")


def test_a_run_that_is_stopped_keeps_what_it_has_and_goes_on(
    tune: Tune, examples: Path, settings: Settings, tmp_path: Path
) -> None:
    stop = StopSignal()
    seen: list[str] = []

    def listen(event: Event) -> None:
        seen.append(event.kind)
        if seen.count("sample_measured") == 3:
            stop.set()

    folder = tmp_path / "run"
    generator = str(examples / "separable_filter.py")
    stopped = tune(generator, parameters=SMALL, run_folder=folder, rounds=30, stop=stop, listen=listen)
    assert stopped.outcome is Outcome.INTERRUPTED and not stopped.best.confirmed
    assert 3 <= stopped.totals.samples_timed <= 5 and stopped.best.header is not None
    before = rows(folder, "SELECT symbol, median_ms FROM measurements ORDER BY rowid")
    with pytest.raises(UsageError, match=r"This run was made with --seed 3, not --seed 4\. Resume it without --seed"):
        resume(folder, changes={"seed": 4}, settings=settings)
    resumed = tune(generator, parameters=SMALL, run_folder=folder, resume=True, rounds=stopped.totals.rounds + 1)
    after = rows(folder, "SELECT symbol, median_ms FROM measurements ORDER BY rowid")
    assert after[: len(before)] == before and len(after) > len(before)
    assert resumed.outcome is Outcome.FINISHED and resumed.best.confirmed
    check_run_folder(resumed, "separable_filter", "wall")


def test_a_run_that_is_stopped_in_its_play_off_is_interrupted_and_confirmed_when_it_goes_on(
    tune: Tune, examples: Path, tmp_path: Path
) -> None:
    stop = StopSignal()
    folder, generator = tmp_path / "run", str(examples / "separable_filter.py")

    def listen(event: Event) -> None:
        if isinstance(event, PlayOff):
            stop.set()

    stopped = tune(generator, parameters=SMALL, run_folder=folder, rounds=1, stop=stop, listen=listen)
    assert stopped.outcome is Outcome.INTERRUPTED
    assert not stopped.best.confirmed and stopped.best.header is not None
    resumed = tune(generator, parameters=SMALL, run_folder=folder, resume=True)
    assert resumed.outcome is Outcome.FINISHED and resumed.best.confirmed


def test_a_schedule_with_wrong_output_never_wins(
    tune: Tune, examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One candidate's object is replaced by one of the same signature that does next to nothing."""
    from halide_autotune.autotune_loop.store.run_store import RunStore

    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        (examples / "separable_filter.py").read_text().replace("hl.u8(total >> (4 * self.radius))", "hl.u8(7)")
    )
    assert "hl.u8(7)" in wrong.read_text()
    victim = "separable_filter_r0_a0_s2"
    compiled = tmp_path / "compiled"
    compiled.mkdir()
    subprocess.run(
        [
            *(sys.executable, wrong),
            *("-g", "separable_filter", "-f", victim, "-n", "wrong", "-o", compiled, "-e", "object"),
            *("target=host-no_runtime", *SMALL),
        ],
        check=True,
    )
    keep_build = RunStore.keep_build

    def keep_another(self: RunStore, candidate: Any, built: Any) -> Any:
        kept = keep_build(self, candidate, built)
        if self.object_path(victim).exists():
            self.object_path(victim).write_bytes((compiled / "wrong.o").read_bytes())
        return kept

    monkeypatch.setattr(RunStore, "keep_build", keep_another)
    result = tune(str(examples / "separable_filter.py"), parameters=SMALL, rounds=1, run_folder=tmp_path / "run")
    assert result.totals.failures.get("measure: wrong output") == 1
    assert victim not in {symbol for (symbol,) in rows(tmp_path / "run", "SELECT symbol FROM measurements")}
    assert not (tmp_path / "run/samples/batch_0_0/2/separable_filter.sample").exists()
    assert result.best.sample != "batch_0_0/2"
    check_run_folder(result, "separable_filter", "wall")


@pytest.mark.parametrize(("failing", "rounds", "tried"), [(2, 3, 3), (9, 1, 1), (9, 9, 4)])
def test_failures_at_first_are_no_end_until_they_are_many(
    failing: int,
    rounds: int,
    tried: int,
    tune: Tune,
    examples: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from halide_autotune.autotune_loop.measure.batch_measurer import BatchMeasurer

    batches: list[int] = []
    measure = BatchMeasurer.measure

    def fail_first(self: BatchMeasurer, batch: Any, *others: Any) -> tuple[int, int]:
        batches.append(len(batch.candidates))
        if len(batches) <= failing:
            return 0, len(batch.candidates)
        return measure(self, batch, *others)

    monkeypatch.setattr(BatchMeasurer, "measure", fail_first)
    arguments = {"parameters": SMALL, "rounds": rounds, "run_folder": tmp_path / "run"}
    if failing < rounds:
        assert tune(str(examples / "separable_filter.py"), **arguments).totals.samples_timed == batches[-1]
    else:
        with pytest.raises(GeneratorError, match="None of the first schedules of separable_filter"):
            tune(str(examples / "separable_filter.py"), **arguments)
    assert len(batches) == tried


def test_a_folder_whose_name_is_hard_on_command_lines(tune: Tune, examples: Path, tmp_path: Path) -> None:
    folder = tmp_path / "my project, v=2 'é'"
    folder.mkdir()
    generator = folder / "blur: the fast one.py"
    generator.write_bytes((examples / "separable_filter.py").read_bytes())
    result = tune(str(generator), parameters=SMALL, rounds=1, run_folder=folder / "run")
    check_run_folder(result, "separable_filter", "wall")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"generator": "no/such.py"}, "no generator file no/such.py"),
        ({"target": "no-such-target"}, "no-such-target"),
        ({"device": "moon"}, "There is no device 'moon'"),
        ({"parallelism": 0}, "--parallelism must be"),
        ({"function_name": "9 lives"}, "cannot be a function's name"),
        ({"parameters": ["width"]}, "key=value"),
        ({"weights": Path("no/such.weights")}, "no/such.weights"),
    ],
)
def test_wrong_arguments_are_one_message_and_leave_nothing(
    tune: Tune, examples: Path, tmp_path: Path, arguments: dict[str, object], words: str
) -> None:
    given = {"generator": str(examples / "separable_filter.py"), "run_folder": tmp_path / "run", **arguments}
    with pytest.raises(SdkError) as caught:
        tune(**given)
    assert words in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_equal_seeds_give_equal_batches(tune: Tune, examples: Path, tmp_path: Path, python_run: TuneResult) -> None:
    again = tune(
        str(examples / "separable_filter.py"),
        parameters=SMALL,
        rounds=1,
        **TINY_BATCH,
        run_folder=tmp_path / "r",
    )
    query = "SELECT sample, schedule_sha256 FROM candidates WHERE round = 0 ORDER BY sample"
    assert rows(again.run_folder, query) == rows(python_run.run_folder, query)


@pytest.mark.slow
def test_two_generators_share_a_run_and_an_incumbent_must_be_beaten(
    tune: Tune, examples: Path, python_run: TuneResult, tmp_path: Path
) -> None:
    """One database, one model, a header each; what is interrupted goes on where each of them was."""
    assert python_run.best.header is not None
    incumbent = tmp_path / "shipped.schedule.h"
    incumbent.write_text(python_run.best.header.read_text())
    generators = [
        GeneratorSpec(str(examples / "separable_filter.py"), SMALL),
        GeneratorSpec(str(examples / "matrix_product.py"), ("rows=32", "columns=32", "depth=32"), ((),), "product"),
    ]
    run = tmp_path / "run"
    options = {"incumbents": {"separable_filter": incumbent}, "run_folder": run, "batch_size": 3, "seed": 3}
    stop = StopSignal()

    def stop_once_both_have_had_a_batch(event: Event) -> None:
        if isinstance(event, BatchDone) and event.task_index == 1:
            stop.set()

    first = tune(generators, rounds=2, stop=stop, listen=stop_once_both_have_had_a_batch, **options)
    assert first.outcome is Outcome.INTERRUPTED and first.generator == "separable_filter, matrix_product"
    assert first.tuned[0].sample == "incumbent", "nothing has been decided against it"
    assert {task for (task,) in rows(run, "SELECT task FROM batches")} == {0, 1}

    result = tune(generators, rounds=2, resume=True, **options)
    batches = dict(rows(run, "SELECT task, count(*) FROM batches GROUP BY task"))
    assert sum(batches.values()) in (3, 4) and min(batches.values()) >= 1
    blur, product = result.tuned
    assert (blur.generator, product.generator) == ("separable_filter", "matrix_product")
    assert blur.header is not None and product.header is not None and product.header.name == "best.product.schedule.h"
    check_header(blur.header, "separable_filter")
    check_header(product.header, "product")
    assert blur.verdict is not None and blur.verdict.baseline == "separable_filter_incumbent_a0"
    assert (blur.sample == "incumbent") == (blur.verdict.winner == blur.verdict.baseline)
    assert blur.default_ms is not None, "the default is timed beside them"
    assert (run / "samples" / "incumbent" / "0" / "kernel.schedule.h").is_file()
    tasks = read_run_record(run).spec.tasks
    assert list(published_names(tasks)) == ["separable_filter", "product"]
    with pytest.raises(GeneratorError, match="incumbent .*shipped.schedule.h does not fit this generator"):
        tune(generators, incumbents={"product": incumbent}, run_folder=tmp_path / "wrong")
    with pytest.raises(UsageError, match="could be for any of separable_filter, product"):
        tune(generators, incumbents={"": incumbent}, run_folder=tmp_path / "unsaid")
    assert not (tmp_path / "wrong").exists() and not (tmp_path / "unsaid").exists()


@pytest.mark.slow
def test_a_run_is_shipped_and_checked(
    python_run: TuneResult,
    examples: Path,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for key, value in settings.environment.items():
        monkeypatch.setenv(key, value)
    output = tmp_path / "schedules"
    ship = ["ship", str(python_run.run_folder), "-o", str(output), "--accept-size", "192x96@5x-3", "--json"]
    assert main(ship) == 0, capfd.readouterr().err
    (shipped,) = json.loads(capfd.readouterr().out)["schedules"]
    provenance = shipped["provenance"]
    assert provenance["tuned_ms"] == pytest.approx(python_run.best.tuned_ms, rel=1e-4)
    assert provenance["default_ms"] == pytest.approx(python_run.best.default_ms, rel=1e-4)
    assert (provenance["clock"], provenance["samples"]) == ("wall", python_run.totals.samples_timed)
    assert shipped["parameters"] == dict(item.split("=") for item in SMALL)
    assert [size[:2] for size in shipped["sizes"][:2]] == [["192x96@5x-3", "accepted"], ["192x96", "accepted"]]
    texts = "".join(path.read_text() for path in output.iterdir())
    assert (
        os.uname().nodename not in texts and str(tmp_path.parents[1]) not in texts and str(examples.parent) not in texts
    )
    before = {path.name: path.read_bytes() for path in output.iterdir()}
    assert main(ship) == 0
    assert {path.name: path.read_bytes() for path in output.iterdir()} == before

    # The same generator in C++ has the same Funcs; with another radius the algorithm is another.
    check = ["ship", "--check", str(output), "--generator", str(examples / "separable_filter.cpp")]
    capfd.readouterr()
    assert main(check) == 0
    assert "is unchanged since it was shipped, 1 compared with their generators" in capfd.readouterr().out
    assert main([*check, "-p", "radius=2"]) == 1
    assert "are defined differently" in capfd.readouterr().err
