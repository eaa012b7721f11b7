"""The whole loop on this machine: Python and C++ generators, argument sets, resuming, what must never win."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from autotune_loop.events import Event, event_to_dict
from autotune_loop.result import Outcome, TuneResult
from autotune_loop.tune_request import SamplingOptions
from devices.measure_settings import KernelInputs
from targets.errors import GeneratorError, RunFolderError, SdkError
from targets.stop_signal import StopSignal
from tests.end_to_end.conftest import SMALL, TINY_BATCH, Tune
from tests.end_to_end.run_files import check_header, check_run_folder, rows


def test_a_python_generator(python_run: TuneResult) -> None:
    assert python_run.outcome is Outcome.FINISHED and python_run.clock == "wall"
    assert python_run.rounds == 2 and python_run.samples_timed >= 5
    check_run_folder(python_run, "separable_filter", "wall")
    best = python_run.best
    assert best.confirmed and best.header is not None and best.tuned_ms is not None and best.default_ms is not None
    # The default itself is the winner where nothing beat it.
    assert best.tuned_ms <= best.default_ms and best.speed_up is not None and best.speed_up >= 1
    check_header(best.header, "separable_filter")
    assert best.header == python_run.run_folder / "samples" / "best.separable_filter.schedule.h"
    benchmark = best.header.with_name("best.separable_filter.benchmark.txt").read_text()
    assert benchmark.startswith(f"{best.tuned_ms:.6g} ms (wall time")
    json.dumps(python_run.to_dict())


def test_the_winner_is_the_fastest_of_the_play_off(python_run: TuneResult) -> None:
    turns = rows(python_run.run_folder, "SELECT symbol, median_ms FROM measurements WHERE purpose = 'play-off'")
    by_symbol: dict[str, list[float]] = {}
    for symbol, median_ms in turns:
        by_symbol.setdefault(symbol, []).append(median_ms)
    medians = sorted(sorted(times)[len(times) // 2] for times in by_symbol.values())
    assert python_run.best.tuned_ms == pytest.approx(medians[0])
    assert "separable_filter_r0_a0_s0" in by_symbol, "the default takes part"


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
    assert dict(first.argset) == {"width": "192", "height": "96"}
    assert dict(second.argset) == {"width": "192", "height": "48", "radius": "1"}
    assert first.header and first.header.name == "best.my_blur.schedule.h"
    assert second.header and second.header.name == "best.my_blur_argset1.schedule.h"
    check_header(second.header, "my_blur_argset1")
    ids = rows(tmp_path / "run", "SELECT DISTINCT argset FROM candidates ORDER BY 1")
    assert ids == [(0,), (1,)]
    kinds = [event_to_dict(event)["event"] for event in events]
    assert kinds[0] == "run_started" and {"sample_measured", "batch_done", "play_off"} <= set(kinds)
    json.dumps([event_to_dict(event) for event in events])


def test_a_pipeline_with_few_schedules_ends_when_they_are_used_up(tune: Tune, tmp_path: Path) -> None:
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
    result = tune(str(source), rounds=20, run_folder=tmp_path / "run")
    assert result.outcome is Outcome.EXHAUSTED
    check_run_folder(result, "plain", "wall")


@pytest.mark.parametrize("name", ["missing_estimates", "manual_schedule"])
def test_a_generator_that_cannot_be_tuned_says_why(tune: Tune, examples: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(
        GeneratorError, match=f"Generator {name} (gives no estimate for output|schedules output by hand)"
    ):
        tune(str(examples / "broken" / f"{name}.py"), run_folder=tmp_path / "run")


def test_an_input_without_an_estimate_says_so(tune: Tune, tmp_path: Path) -> None:
    source = Path(__file__).parents[1] / "unit" / "targets" / "generators" / "no_estimates.py"
    with pytest.raises(SdkError, match="'input' has no estimates: call set_estimates on it"):
        tune(f"{source}:no_input", run_folder=tmp_path / "run")
    sized = KernelInputs(sizes={"input": "101x100"})
    result = tune(f"{source}:no_input", rounds=1, inputs=sized, run_folder=tmp_path / "sized")
    check_run_folder(result, "no_input", "wall")


def test_a_search_that_needs_too_much_memory_is_stopped_and_told(tune: Tune, examples: Path, tmp_path: Path) -> None:
    with pytest.raises(GeneratorError, match="Generator memory_hog ran out of its 0.5 GiB of memory"):
        tune(str(examples / "broken" / "memory_hog.py"), memory_limit_bytes=2**29, run_folder=tmp_path / "run")


def test_a_search_that_hangs_is_stopped_and_told(tune: Tune, examples: Path, tmp_path: Path) -> None:
    with pytest.raises(GeneratorError, match="Generator hangs did not end within 2 s"):
        tune(str(examples / "broken" / "hangs.py"), search_limit_s=2.0, run_folder=tmp_path / "run")


def test_a_run_that_is_stopped_keeps_what_it_has_and_goes_on(tune: Tune, examples: Path, tmp_path: Path) -> None:
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
    assert 3 <= stopped.samples_timed <= 5 and stopped.best.header is not None
    before = rows(folder, "SELECT symbol, median_ms FROM measurements ORDER BY rowid")
    with pytest.raises(RunFolderError, match=r"seed: the run has 3, now 4"):
        other = SamplingOptions(batch_size=5, pool_factor=1.0, seed=4)
        tune(generator, parameters=SMALL, run_folder=folder, resume=True, sampling=other)
    resumed = tune(generator, parameters=SMALL, run_folder=folder, resume=True, rounds=stopped.rounds + 1)
    after = rows(folder, "SELECT symbol, median_ms FROM measurements ORDER BY rowid")
    assert after[: len(before)] == before and len(after) > len(before)
    assert resumed.outcome is Outcome.FINISHED and resumed.best.confirmed
    check_run_folder(resumed, "separable_filter", "wall")


def test_a_schedule_with_wrong_output_never_wins(
    tune: Tune, examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One candidate's object is replaced by one of the same signature that does next to nothing."""
    from autotune_loop.run_store import RunStore

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

    def keep_another(self: RunStore, candidate: object, built: object) -> object:
        kept = keep_build(self, candidate, built)  # type: ignore[arg-type]
        if self.object_path(victim).exists():
            self.object_path(victim).write_bytes((compiled / "wrong.o").read_bytes())
        return kept

    monkeypatch.setattr(RunStore, "keep_build", keep_another)
    result = tune(str(examples / "separable_filter.py"), parameters=SMALL, rounds=1, run_folder=tmp_path / "run")
    assert result.failures.get("measure: wrong output") == 1
    assert victim not in {symbol for (symbol,) in rows(tmp_path / "run", "SELECT symbol FROM measurements")}
    assert not (tmp_path / "run/samples/batch_0_0/2/separable_filter.sample").exists()
    assert result.best.sample != "batch_0_0/2"
    check_run_folder(result, "separable_filter", "wall")


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
        ({"generator": "no/such.py"}, "there is no such generator file"),
        ({"target": "no-such-target"}, "no-such-target"),
        ({"device": "moon"}, "There is no device 'moon'"),
        ({"parallelism": 0}, "--parallelism must be at least 1"),
        ({"function_name": "9 lives"}, "cannot be a function's name"),
        ({"parameters": ["width"]}, "is not of the form key=value"),
        ({"weights": Path("no/such.weights")}, "no/such.weights"),
    ],
)
def test_wrong_arguments_are_one_sentence_and_leave_nothing(
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
        sampling=TINY_BATCH,
        run_folder=tmp_path / "r",
    )
    query = "SELECT sample, schedule_sha256 FROM candidates WHERE round = 0 ORDER BY sample"
    assert rows(again.run_folder, query) == rows(python_run.run_folder, query)
