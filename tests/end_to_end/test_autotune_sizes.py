"""One run for several sizes: every candidate is timed at each; a size may get a schedule of its own, which ships."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.events import Event, Notice
from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run
from halide_autotune.autotune_loop.report.run_page import PageOptions
from halide_autotune.autotune_loop.run.decision import size_play_offs
from halide_autotune.autotune_loop.run.result import Outcome, TuneResult
from halide_autotune.autotune_loop.shipping.ship_manifest import read_manifest
from halide_autotune.autotune_loop.store.run_record import read_run_record
from halide_autotune.sdk import check_shipped, resume, ship
from halide_autotune.sdk.api.report import write_report
from halide_autotune.sdk.checks.run_checks import check_run
from halide_autotune.sdk.options.ship_options import ShipOptions
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import GeneratorError, RunFolderError, UsageError
from halide_autotune.targets.halide_install import HalideInstall
from tests.end_to_end.conftest import SMALL, Tune
from tests.end_to_end.run_files import check_run_folder, rows

MAIN, LARGER = "input=192x96x3 output=192x96x3", "input=384x192x3 output=384x192x3"


@pytest.fixture(scope="module")
def run(tune: Tune, examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TuneResult]:
    """Which schedule is fastest where is luck, so any is fast enough for a size of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(size_play_offs, "LEAST_SPEED_UP", 0.01)
        yield tune(
            str(examples / "separable_filter.py"),
            parameters=SMALL,
            also_sizes=["input=384x192x3"],
            technique=["sampling"],
            rounds=1,
            run_folder=tmp_path_factory.mktemp("size_schedules") / "run",
        )


def test_what_is_published_is_the_geometric_mean(run: TuneResult) -> None:
    assert run.outcome is Outcome.FINISHED and run.best.confirmed
    check_run_folder(run, "separable_filter", "wall")
    tuned = run.best.tuned
    assert tuned is not None and list(tuned.by_size_ms) == [MAIN, LARGER]
    assert tuned.words.endswith(", geometric mean of 2 sizes")
    turns = run.best.verdict and run.best.verdict.turns
    per_turn = rows(
        run.run_folder,
        f"SELECT size, median_ms FROM size_times WHERE purpose='play-off' AND symbol='{run.best.published.symbol}'",
    )
    for size, time_ms in tuned.by_size_ms.items():
        times_ms = sorted([median_ms for of, median_ms in per_turn if of == size][-(turns or 0) :])
        assert times_ms[0] <= time_ms <= times_ms[-1]
    assert run.best.header is not None
    note = run.best.header.with_name("best.separable_filter.benchmark.txt").read_text()
    assert f"ms at {MAIN}\n" in note and f"ms at {LARGER}\n" in note
    told = json.loads(json.dumps(run.to_dict()))["tuned"][0]
    assert list(told["tuned_by_size_ms"]) == [MAIN, LARGER] == list(told["default_by_size_ms"])


def test_each_time_is_the_geometric_mean_of_those_at_the_sizes(run: TuneResult) -> None:
    measured = rows(run.run_folder, "SELECT symbol, median_ms, output_checked FROM measurements WHERE purpose='sample'")
    assert len(measured) >= 3
    for symbol, median_ms, checked in measured:
        times = rows(
            run.run_folder, f"SELECT size, median_ms FROM size_times WHERE purpose='sample' AND symbol='{symbol}'"
        )
        assert checked == 1 and [size for size, _ in times] == [MAIN, LARGER]
        assert median_ms == pytest.approx(math.prod(time_ms for _, time_ms in times) ** 0.5)


def test_an_unconfirmed_winner_has_its_times_too(run: TuneResult) -> None:
    """What is published before the play-off, and stays where the devices are lost, has them from the rounds."""
    (row,) = rows(run.run_folder, "SELECT published FROM published ORDER BY rowid LIMIT 1")
    first = json.loads(row[0])
    assert not first["confirmed"]
    by_size_ms = first["tuned"]["by_size_ms"]
    assert list(by_size_ms) == [MAIN, LARGER]
    assert math.prod(by_size_ms.values()) ** 0.5 == pytest.approx(first["tuned"]["median_ms"])


def test_a_resumed_run_goes_on_at_all_sizes(run: TuneResult, settings: Settings, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(run.run_folder, tmp_path / "run"))
    events: list[Event] = []
    timed = run.totals.samples_timed
    again = resume(folder, changes={"rounds": 2}, listen=events.append, settings=settings)
    assert again.totals.samples_timed > timed
    assert any(isinstance(event, Notice) and f"Resumed with {timed} timed" in event.text for event in events)
    counts = rows(folder, "SELECT size, count(*) FROM size_times WHERE purpose='sample' GROUP BY size")
    assert sorted(counts) == sorted([(MAIN, again.totals.samples_timed), (LARGER, again.totals.samples_timed)])
    assert again.best.tuned is not None and list(again.best.tuned.by_size_ms) == [MAIN, LARGER]
    with pytest.raises(UsageError, match="This run was made with --also-size input=384x192x3"):
        resume(folder, changes={"also_sizes": ["input=512x32x3"]}, settings=settings)


def test_a_size_gets_the_schedule_that_wins_its_play_off(run: TuneResult) -> None:
    assert run.best.confirmed and run.best.header is not None
    own = run.best.size_schedules
    assert [one.size for one in own] == [MAIN, LARGER] and all(one.is_own for one in own)
    assert [(one.argument, one.extents) for one in own] == [("output", "192x96x3"), ("output", "384x192x3")]
    for one in own:
        assert one.symbol != run.best.published.symbol and one.tuned is not None and one.speed_up is not None
        assert " times as fast as the schedule for all sizes (95 % interval " in one.message
        header = run.best.header.with_name(one.header)
        assert one.header == f"best.separable_filter.at_{one.extents}.schedule.h"
        assert hashlib.sha256(header.read_bytes()).hexdigest() == one.header_sha256
        assert f"apply_schedule_separable_filter_at_{one.extents}(" in header.read_text()
    timed = rows(run.run_folder, "SELECT DISTINCT symbol FROM measurements WHERE purpose='size play-off'")
    assert {symbol for (symbol,) in timed} >= {run.best.published.symbol, *(one.symbol for one in own)}


def test_a_run_tells_what_is_used_at_each_size(run: TuneResult) -> None:
    told = json.loads(json.dumps(run.to_dict()))["tuned"][0]["size_schedules"]
    assert [one["extents"] for one in told] == ["192x96x3", "384x192x3"]
    assert [one["sample"] for one in told] == [one.sample for one in run.best.size_schedules]
    (header,) = read_recorded_run(run.run_folder).headers.values()
    assert header.size_schedules == run.best.size_schedules


def test_the_page_and_the_doctor_know_them(run: TuneResult, tmp_path: Path) -> None:
    page = write_report(read_recorded_run(run.run_folder), tmp_path / "page.html", PageOptions()).read_text()
    own = run.best.size_schedules
    assert all(
        f'<tr><th scope="row">{one.size}</th><td>{one.sample}</td><td class="long">{one.message}</td></tr>' in page
        for one in own
    )
    checks = {check.name: check for check in check_run(run.run_folder)}
    assert all(check.passed for check in checks.values()) and {one.header for one in own} <= checks.keys()
    copied = Path(shutil.copytree(run.run_folder, tmp_path / "run"))
    (copied / "samples" / own[0].header).unlink()
    assert [check.name for check in check_run(copied) if not check.passed] == [own[0].header]


@pytest.fixture(scope="module")
def shipped(run: TuneResult, settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shipped") / "schedules"
    ship([run.run_folder], folder, settings=settings)
    return folder


def test_what_ships_has_a_schedule_for_each_size(shipped: Path) -> None:
    manifest = read_manifest(shipped)
    assert {one.for_size for one in manifest.schedules} == {"", "192x96x3", "384x192x3"}
    general = next(one for one in manifest.schedules if not one.for_size)
    assert general.by_size == f"{general.function_name}_by_size.c"
    for one in manifest.schedules:
        text = (shipped / one.header).read_text()
        assert f"apply_schedule_{one.function_name}(" in text and one.sizes is not None
        if one.for_size:
            assert f"// for one size  {MAIN if one.for_size == '192x96x3' else LARGER}\n" in text
            assert "times as fast as the schedule for all sizes" in str(one.provenance["verdict"])


KERNELS = ("any_size", "192x96x3", "384x192x3")
COMPILE = ("cc", "-std=c11", "-Wall", "-Wextra", "-Werror")


def command(*words: str | Path) -> str:
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=1500, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def objects(
    shipped: Path, run: TuneResult, examples: Path, halide: HalideInstall, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder with the kernels, each built with the schedule of its name, and the source that chooses among them."""
    folder = tmp_path_factory.mktemp("kernels")
    source = (examples / "separable_filter.py").read_text()
    call = (
        "separable_filter_schedule.apply_schedule(hl.Pipeline([self.output]), self.target(), size=self.schedule_size)"
    )
    edits = {
        "import halide as hl\n": f"import sys\n\nimport halide as hl\n\nsys.path.insert(0, {str(shipped)!r})\n"
        "import separable_filter_schedule\n",
        "    radius = hl.G": '    schedule_size = hl.GeneratorParam("")\n    radius = hl.G',
        # A Python module does not take the generator's own schedule off.
        "            columns.compute_at(self.output, y).vectorize(x, lanes)\n": f"            {call}\n",
        "            self.output.parallel(y).vectorize(x, lanes)\n": "",
    }
    for old, new in edits.items():
        assert old in source
        source = source.replace(old, new)
    (folder / "made.py").write_text(source)
    target = read_run_record(run.run_folder).spec.profile.halide_target
    for index, kernel in enumerate(KERNELS):
        name = f"separable_filter_at_{kernel}"
        emit = ["-e", "object", f"target={target}" + ("-no_runtime" if index else "")]
        emit += [] if kernel == "any_size" else [f"schedule_size={kernel}"]
        command(
            sys.executable, folder / "made.py", "-g", "separable_filter", "-f", name, "-n", name, "-o", folder,
            *emit, *SMALL,
        )  # fmt: skip
    (chooser,) = shipped.glob("*_by_size.c")
    command(*COMPILE, "-c", chooser, f"-I{halide.include_dir}", "-o", folder / "by_size.o")
    return folder


def test_each_call_runs_the_kernel_of_its_size(objects: Path, halide: HalideInstall) -> None:
    """The linker puts a counter before each kernel, and every output is that of each kernel that takes the size."""
    program = objects / "called"
    wrapped = [f"-Wl,--wrap=separable_filter_at_{kernel}" for kernel in KERNELS]
    kernels = [objects / f"separable_filter_at_{kernel}.o" for kernel in KERNELS]
    source = Path(__file__).parent / "called_by_size.c"
    command(
        *COMPILE, source, objects / "by_size.o", *kernels, f"-I{halide.include_dir}", *wrapped, "-o", program,
        "-lpthread", "-ldl", "-lm",
    )  # fmt: skip
    called = {line.split()[0]: line.split()[1:] for line in command(program).splitlines()}
    assert called["192x96x3"] == ["192x96x3"] and called["384x192x3"] == ["384x192x3"]
    # The nearest one where its tiles fit, else the one for all sizes.
    for size, nearest in (("200x100x3", "192x96x3"), ("1000x700x3", "384x192x3"), ("1x1x3", "192x96x3")):
        assert called[size] in ([nearest], ["any_size"])


def test_schedules_of_an_unknown_size_are_refused(objects: Path, run: TuneResult, tmp_path: Path) -> None:
    target = read_run_record(run.run_folder).spec.profile.halide_target
    done = subprocess.run(
        [
            sys.executable, objects / "made.py", "-g", "separable_filter", "-e", "object", "-o", tmp_path,
            f"target={target}", "schedule_size=1x1x3",
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    told = "There is no schedule of separable_filter for the size 1x1x3; there are some for 192x96x3, 384x192x3."
    assert done.returncode != 0 and told in done.stderr


def test_what_is_shipped_is_checked(shipped: Path, examples: Path, settings: Settings, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(shipped, tmp_path / "schedules", ignore=shutil.ignore_patterns("__pycache__")))
    generator = str(examples / "separable_filter.py")
    checked = check_shipped(folder, generators=[generator], settings=settings)
    assert (checked.problems, checked.schedules) == ((), 3)
    (chooser,) = folder.glob("*_by_size.c")
    chooser.write_text(chooser.read_text() + "/* edited */\n")
    problems = check_shipped(folder, generators=[generator], parameters=["radius=2"], settings=settings).problems
    assert f"{chooser.name} was changed after it was shipped." in problems
    assert sum(".at_" in problem and "defined differently" in problem for problem in problems) == 2


def test_one_schedule_ships_where_that_is_asked(
    shipped: Path, run: TuneResult, settings: Settings, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="has schedules for single sizes, which do not ship untried"):
        ship([run.run_folder], tmp_path / "untried", ShipOptions(no_sizes=True), settings=settings)
    options = ShipOptions(no_sizes=True, one_schedule=True)
    folder = tmp_path / "schedules"
    shutil.copytree(shipped, folder, ignore=shutil.ignore_patterns("__pycache__"))
    manifest = ship([run.run_folder], folder, options, settings=settings)
    assert [one.for_size for one in manifest.schedules] == [""]
    assert sorted(path.name for path in folder.iterdir()) == sorted([*manifest.files, "ship.json"])


def test_a_changed_header_of_a_size_does_not_ship(run: TuneResult, settings: Settings, tmp_path: Path) -> None:
    assert run.best.header is not None
    header = run.best.header.with_name(run.best.size_schedules[0].header)
    text = header.read_text()
    header.write_text(text + "// edited\n")
    try:
        with pytest.raises(RunFolderError, match="192x96x3.schedule.h was changed after the run had published it"):
            ship([run.run_folder], tmp_path / "schedules", ShipOptions(no_sizes=True), settings=settings)
    finally:
        header.write_text(text)


def test_several_pipelines_at_several_sizes_are_refused(tune: Tune, examples: Path, tmp_path: Path) -> None:
    asked = {"also_sizes": ["input=384x192x3"], "run_folder": tmp_path / "run"}
    with pytest.raises(UsageError, match="--also-size is for one generator with one set of parameters"):
        tune(str(examples / "separable_filter.py"), argsets=[["width=64"], ["width=128"]], **asked)
    assert not (tmp_path / "run").exists()


def test_a_schedule_that_does_not_fit_a_further_size_has_failed(tune: Tune, examples: Path, tmp_path: Path) -> None:
    """Nothing is published that refuses a size which was asked for."""
    events: list[Event] = []
    with pytest.raises(GeneratorError, match="At input=24x16x3 output=24x16x3: ") as caught:
        tune(
            str(examples / "separable_filter.py"),
            parameters=("width=1024", "height=256"),
            also_sizes=["output=24x16x3"],
            technique=["sampling"],
            rounds=1,
            run_folder=tmp_path / "run",
            listen=events.append,
        )
    assert "None of the first schedules of separable_filter could be timed" in caught.value.message
    assert any(isinstance(event, Notice) and "may not fit a smaller size" in event.text for event in events)
    reasons = rows(tmp_path / "run", "SELECT DISTINCT reason FROM failures WHERE stage='measure'")
    assert reasons == [("Halide error",)]
