"""Nothing is published without the time of the default, or the reason why it has none."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.autotune_loop.candidate import SearchFailure
from halide_autotune.autotune_loop.events import Event, Notice
from halide_autotune.autotune_loop.execute.tasks.build_tasks import Search
from halide_autotune.autotune_loop.run.result import Outcome, TunedSchedule, TuneResult
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.sdk import ship
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import RunFolderError
from halide_autotune.targets.generator.run import GeneratorFailure, GeneratorFailureReason
from halide_autotune.targets.process.stop_signal import StopSignal
from tests.end_to_end.conftest import SMALL, Tune
from tests.end_to_end.run_files import check_run_folder, rows

pytestmark = pytest.mark.toolchain

DEFAULT = "separable_filter_r0_a0_s0"
FULL = "No space left on device"


def check_default_is_there(result: TuneResult) -> None:
    best = result.best
    assert best.confirmed and best.header is not None and best.default_ms is not None
    assert best.published.speed_up is not None and best.published.speed_up.than == "default"
    assert best.published.no_default is None and "has no time" not in benchmark_text(result.run_folder)
    check_run_folder(result, "separable_filter", "wall")


def benchmark_text(folder: Path) -> str:
    return (folder / "samples/best.separable_filter.benchmark.txt").read_text()


def shipped_header(folder: Path, output: Path, settings: Settings) -> str:
    ship([folder], output=output, settings=settings)
    (header,) = output.glob("separable_filter.*.schedule.h")
    return header.read_text()


def check_reason_is_told(best: TunedSchedule, folder: Path, words: str) -> None:
    assert best.header is not None and (best.default_ms, best.speed_up) == (None, None)
    assert best.published.no_default is not None
    sentence = best.published.no_default.sentence
    assert sentence.startswith("The default has no time, because ") and words in sentence
    assert best.to_dict()["no_default"] == sentence and sentence in benchmark_text(folder)


def test_a_default_that_a_full_disk_has_cost_is_timed_first_when_the_run_goes_on(
    tune: Tune, examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    folder, generator = tmp_path / "run", str(examples / "separable_filter.py")
    run = Search.run

    def fails(self: Search, state: Any) -> Any:
        """Every search that writes code: with the pool's searches the disk was not full yet."""
        if self.symbol:
            return SearchFailure(self.point, GeneratorFailure(GeneratorFailureReason.FAILED, FULL, "", 0.1))
        return run(self, state)

    with monkeypatch.context() as patched:
        patched.setattr(Search, "run", fails)
        first = tune(generator, parameters=SMALL, rounds=1, run_folder=folder)
    check_reason_is_told(first.best, folder, FULL)
    header = shipped_header(folder, tmp_path / "first", settings)
    assert "// default       has no time: its search failed (failed)\n" in header

    order: list[str] = []

    def listen(event: Event) -> None:
        if event.kind in ("sample_measured", "search_progress"):
            order.append(event.kind)

    resumed = tune(generator, parameters=SMALL, rounds=2, run_folder=folder, resume=True, listen=listen)
    assert order[0] == "sample_measured", "the default is timed before the next batch is begun"
    check_default_is_there(resumed)
    assert rows(folder, f"SELECT count(*) FROM measurements WHERE symbol='{DEFAULT}' AND purpose='sample'") == [(1,)]
    header = shipped_header(folder, tmp_path / "second", settings)
    assert resumed.best.default_ms is not None
    default_ms = float(f"{resumed.best.default_ms:.6g}")  # a header's facts have six digits
    assert f"// default       {default_ms:.4g} ms" in header and f"double default_ms = {default_ms:.6g}" in header
    assert f"double speed_up = {resumed.best.speed_up:.6g}" in header


def test_nothing_is_published_by_a_run_that_ends_before_the_default_is_built(
    tune: Tune, examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, generator = tmp_path / "run", str(examples / "separable_filter.py")
    keep_build = RunStore.keep_build

    def fails(self: RunStore, candidate: Any, built: Any) -> Any:
        if candidate.symbol == DEFAULT:
            raise RunFolderError(f"{folder} cannot be written: {FULL}.")
        return keep_build(self, candidate, built)

    with monkeypatch.context() as patched:
        patched.setattr(RunStore, "keep_build", fails)
        with pytest.raises(RunFolderError, match=FULL):
            tune(generator, parameters=SMALL, rounds=1, run_folder=folder)
    assert rows(folder, f"SELECT count(*) FROM candidates WHERE symbol='{DEFAULT}'") == [(1,)]
    assert not list(folder.glob("samples/best.*"))
    # All rounds are done, but for the default.
    check_default_is_there(tune(generator, parameters=SMALL, rounds=1, run_folder=folder, resume=True))


def test_a_run_that_is_stopped_before_the_default_is_timed_says_so_and_publishes_nothing(
    tune: Tune, examples: Path, tmp_path: Path
) -> None:
    stop = StopSignal()

    def listen(event: Event) -> None:
        if event.kind == "best_improved":  # by the reference, before the first batch
            stop.set()

    folder, generator = tmp_path / "run", str(examples / "separable_filter.py")
    stopped = tune(generator, parameters=SMALL, rounds=1, run_folder=folder, stop=stop, listen=listen)
    assert stopped.outcome is Outcome.INTERRUPTED and stopped.best.header is None
    assert stopped.best.to_dict()["no_default"] == "The default has no time, because the run ended before it was timed."
    assert not list(folder.glob("samples/best.*"))
    check_default_is_there(tune(generator, parameters=SMALL, rounds=1, run_folder=folder, resume=True))


@pytest.mark.parametrize("lost", ["code", "code and header"])
def test_lost_code_of_the_best_and_the_default_is_built_again_for_the_play_off(
    tune: Tune, examples: Path, tmp_path: Path, python_run: TuneResult, lost: str
) -> None:
    folder, generator = tmp_path / "run", str(examples / "separable_filter.py")
    shutil.copytree(python_run.run_folder, folder)
    shutil.rmtree(folder / "objects")
    if lost == "code and header":
        (folder / "samples/batch_0_0/0/separable_filter.schedule.h").unlink()
    notices: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, Notice):
            notices.append(event.text)

    result = tune(generator, parameters=SMALL, run_folder=folder, resume=True, listen=listen)
    check_default_is_there(result)
    assert result.best.verdict is not None and result.best.verdict.baseline == DEFAULT
    assert not [text for text in notices if "is held without" in text]
    before, after = (
        {symbol for (symbol,) in rows(run, "SELECT symbol FROM measurements WHERE purpose='play-off'")}
        for run in (python_run.run_folder, folder)
    )
    assert before <= after


def test_a_default_with_wrong_output_is_the_reason_and_is_not_tried_again(
    tune: Tune, examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its object is replaced by that of a pipeline of the same name with other weights."""
    folder, source = tmp_path / "run", (examples / "separable_filter.py").read_text()
    wrong = tmp_path / "wrong.py"
    wrong.write_text(source.replace("hl.u8(total >> (4 * self.radius))", "hl.u8(7)"))
    keep_build = RunStore.keep_build

    def keep_another(self: RunStore, candidate: Any, built: Any) -> Any:
        kept = keep_build(self, candidate, built)
        if candidate.symbol == DEFAULT:
            kept.kernel.object_path.write_bytes((tmp_path / "wrong.o").read_bytes())
        return kept

    command: list[str | Path] = [
        sys.executable,
        wrong,
        "-g",
        "separable_filter",
        "-f",
        DEFAULT,
        "-n",
        "wrong",
        "-o",
        tmp_path,
    ]
    subprocess.run([*command, "-e", "object", "target=host-no_runtime", *SMALL], check=True)
    with monkeypatch.context() as patched:
        patched.setattr(RunStore, "keep_build", keep_another)
        first = tune(str(examples / "separable_filter.py"), parameters=SMALL, rounds=1, run_folder=folder)
    check_reason_is_told(first.best, folder, "it failed when it was timed (wrong output)")
    again = tune(str(examples / "separable_filter.py"), parameters=SMALL, run_folder=folder, resume=True, rounds=2)
    check_reason_is_told(again.best, folder, "(wrong output)")
    assert rows(folder, f"SELECT count(*) FROM failures WHERE symbol='{DEFAULT}'") == [(1,)]
    json.dumps(again.to_dict())
