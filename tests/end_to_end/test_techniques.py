"""A run whose techniques propose schedules as data, with the simulated clock: equal runs have equal times."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.autotune_loop.events import Event, Notice
from halide_autotune.autotune_loop.history.history import NestLimits
from halide_autotune.autotune_loop.history.known_schedule import threads_text
from halide_autotune.autotune_loop.lowered.lowered_file import read_lowered, unpack_lowered
from halide_autotune.autotune_loop.moves.mutation import CROSSOVER, MOVES
from halide_autotune.autotune_loop.run import rounds
from halide_autotune.autotune_loop.run.result import TuneResult
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.search import lowering
from halide_autotune.autotune_loop.search.known.known_schedules import known_pipelines
from halide_autotune.autotune_loop.search.models.model import MODELS
from halide_autotune.autotune_loop.search.techniques.registry import TECHNIQUES
from halide_autotune.autotune_loop.store.run_database import RunDatabase
from halide_autotune.autotune_loop.store.run_record import read_run_record
from halide_autotune.sdk.project.history import keep_run, open_history
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.lowering.loop_nest import Access, Loop
from tests.end_to_end.conftest import SMALL, Tune
from tests.end_to_end.run_files import check_header, rows
from tests.installed_package import install_package

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("qemu-x86_64"), reason="qemu-x86_64 is not installed"),
]

ASKED: dict[str, Any] = {
    "parameters": SMALL,
    "target": "x86-64",
    "device": "qemu",
    "technique": ["evolution", "sketches"],
    "batch_size": 6,
}
CHOSEN = "SELECT round, sample, origin, lineage, schedule_sha256 FROM candidates ORDER BY candidate"


@pytest.fixture(scope="module", autouse=True)
def without_wall_time() -> Iterator[None]:
    """Nothing that is chosen depends on how long this machine takes to build or to search."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunDatabase, "build_times_s", lambda database, task_index=None: {})
        patch.setattr(lowering.TaskLowering, "affordable", lambda lowering, wanted: 3 * wanted)
        patch.setattr(rounds, "_REPEAT_FULL_SEARCH_BELOW_S", 0.0)
        yield


@pytest.fixture(scope="module")
def run(tune: Tune, examples: Path, tmp_path_factory: pytest.TempPathFactory) -> TuneResult:
    folder = tmp_path_factory.mktemp("techniques") / "run"
    return tune(str(examples / "separable_filter.py"), rounds=3, run_folder=folder, **ASKED)


def test_both_techniques_have_schedules_that_are_timed_and_right(run: TuneResult) -> None:
    timed = rows(
        run.run_folder,
        "SELECT c.origin, m.output_checked, m.clock FROM candidates c JOIN measurements m ON m.symbol = c.symbol"
        " WHERE m.purpose = 'sample'",
    )
    origins = [origin for origin, *_ in timed]
    assert origins.count("sketch") >= 4 and origins.count("evolution") >= 3
    assert set(origins) == {"full beam search", "sketch", "evolution"}, "and the default"
    assert {(checked, clock) for _, checked, clock in timed} == {(1, "simulated")}


def test_batches_have_no_more_schedules_than_were_asked_for(run: TuneResult) -> None:
    counts = rows(run.run_folder, "SELECT round, count(*) FROM candidates GROUP BY round ORDER BY round")
    assert [count for _, count in counts] == [6] * len(counts) and len(counts) == 3


def test_what_evolution_proposes_was_lowered_and_its_loop_nest_is_kept(run: TuneResult) -> None:
    made = rows(run.run_folder, "SELECT round, sample FROM candidates WHERE origin = 'evolution'")
    folders = [run.run_folder / "samples" / f"batch_{batch}_0" / str(sample) for batch, sample in made]
    nests = [read_lowered(folder / "separable_filter.lowered") for folder in folders]
    assert len(nests) >= 3
    for nest in nests:
        assert any(access.buffer == "output" for access in accesses_in(nest.root))


def run_threads(run: TuneResult) -> int:
    return read_run_record(run.run_folder).spec.parallelism


def accesses_in(loop: Loop) -> Iterator[Access]:
    for computation in loop.computations:
        yield from computation.accesses
    for inside in loop.loops:
        yield from accesses_in(inside)


def test_what_they_were_made_from_is_recorded(run: TuneResult) -> None:
    made = rows(run.run_folder, "SELECT symbol, origin, lineage, round FROM candidates ORDER BY candidate")
    place = {symbol: index for index, (symbol, *_) in enumerate(made)}
    moves = {move.name for move in MOVES} | {CROSSOVER}
    for symbol, origin, text, round_index in made:
        if origin == "full beam search":
            assert text is None
            continue
        lineage = json.loads(text)
        if origin == "sketch":
            assert lineage["parents"] == [] and len(lineage["moves"]) == 1
        else:
            assert round_index > 0, "nothing was timed before"
            assert 1 <= len(lineage["parents"]) <= 2 and lineage["moves"] and set(lineage["moves"]) <= moves
            # Whose outputs all others are compared with is a schedule like any other.
            parents = [each for each in lineage["parents"] if each != "separable_filter_reference_a0"]
            assert all(place[parent] < place[symbol] for parent in parents)


def test_every_candidate_has_a_header_of_its_own(run: TuneResult) -> None:
    texts = []
    for round_index, sample, origin, *_ in rows(run.run_folder, CHOSEN):
        path = run.run_folder / "samples" / f"batch_{round_index}_0" / str(sample) / "separable_filter.schedule.h"
        if origin != "full beam search":
            check_header(path, "separable_filter")
            schedule = parse_schedule(path.read_text())
            texts.append(str(schedule.stages))
    assert len(texts) == len(set(texts)) >= 12
    hashes = [sha256 for *_, sha256 in rows(run.run_folder, CHOSEN)]
    assert len(hashes) == len(set(hashes)), "a schedule was chosen twice"


def test_what_wins_is_published_whoever_proposed_it(run: TuneResult) -> None:
    best = run.best
    assert best.header is not None and best.confirmed
    check_header(best.header, "separable_filter")


def test_an_equal_run_chooses_the_same_and_resuming_goes_on(
    tune: Tune, run: TuneResult, examples: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # Simulated times are equal where programs' paths are equally long.
    folder = tmp_path_factory.mktemp("techniques") / "run"
    assert len(str(folder)) == len(str(run.run_folder))
    again = tune(str(examples / "separable_filter.py"), rounds=2, run_folder=folder, **ASKED)
    chosen = rows(again.run_folder, CHOSEN)
    assert chosen == rows(run.run_folder, CHOSEN)[: len(chosen)] and len(chosen) == 12
    resumed = tune("", resume=True, run_folder=again.run_folder, rounds=3)
    assert resumed.totals.rounds == 3
    later = rows(again.run_folder, CHOSEN)
    assert later[:12] == chosen and len(later) > 12
    proposed = [
        (origin, json.loads(lineage)) for round_index, _, origin, lineage, _ in later if round_index == 2 and lineage
    ]
    assert any(origin == "evolution" and lineage["parents"] for origin, lineage in proposed)
    hashes = [sha256 for *_, sha256 in later]
    assert len(hashes) == len(set(hashes))


def test_the_technique_and_the_model_of_the_example_work_in_a_run(
    tune: Tune, examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = examples / "extensions"
    groups = {
        TECHNIQUES.group: {"walk": "lab_extensions.walk:Walk"},
        MODELS.group: {"neighbours": "lab_extensions.neighbours:Neighbours"},
    }
    install_package(tmp_path / "packages", "lab-extensions", groups, {}, monkeypatch)
    monkeypatch.syspath_prepend(str(package))
    result = tune(
        str(examples / "separable_filter.py"),
        rounds=3,
        run_folder=tmp_path / "run",
        **{**ASKED, "technique": ["sketches", "walk", "evolution"], "model": "neighbours"},
    )
    chosen = rows(result.run_folder, "SELECT origin, lineage FROM candidates WHERE lineage IS NOT NULL")
    told = [json.loads(lineage) for origin, lineage in chosen if origin == "plug-in"]
    assert told and all(one["technique"] == "walk" and one["moves"] for one in told)
    assert read_run_record(result.run_folder).spec.options.search.model == "neighbours"


def test_on_a_real_processor_it_is_looked_where_the_time_of_the_fastest_goes(
    tune: Tune, examples: Path, tmp_path: Path
) -> None:
    asked = {**ASKED, "device": "local", "target": "host", "batch_size": 4}
    result = tune(str(examples / "separable_filter.py"), rounds=3, run_folder=tmp_path / "run", **asked)
    looked = rows(result.run_folder, "SELECT symbol, shares FROM func_shares")
    assert looked, "once at least, when the third batch is made"
    timed = {symbol for (symbol,) in rows(result.run_folder, "SELECT symbol FROM measurements")}
    for symbol, text in looked:
        shares = json.loads(text)
        assert symbol in timed and shares["output"] > 0 and sum(shares.values()) == pytest.approx(1.0)
    assert not [*(result.run_folder / "work" / "profiled").glob("*")]


def test_a_run_of_an_equal_pipeline_starts_from_what_earlier_ones_found(
    run: TuneResult, tune: Tune, examples: Path, settings: Settings, tmp_path: Path
) -> None:
    mine = replace(settings, config_folder=tmp_path / "config")
    history = open_history(mine)
    assert keep_run(run.run_folder, history) == run.totals.samples_timed
    nests = history.nests(
        "x86-64-linux", threads_text(run_threads(run)), NestLimits(most_pipelines=2, most_each=50, fewest_each=1)
    )
    assert len(nests) == 1 and all(time_ms > 0 and unpack_lowered(content, "") for content, time_ms in nests[0])
    best_ms = [one.time_ms for one in history.best(known_pipelines(run.run_folder)[0].identity, ("x86-64", "", ""), 4)]
    copied = shutil.copy(examples / "separable_filter.py", tmp_path / "copied.py")  # the file's name is not what counts
    told: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, Notice):
            told.append(event.text)

    again = tune(
        str(copied), rounds=1, run_folder=tmp_path / "run", settings=mine, no_history=False, listen=listen, **ASKED
    )
    assert any("starts from the 4 best schedules of earlier ones" in text for text in told)
    timed = (
        "SELECT c.schedule_sha256, m.median_ms FROM candidates c JOIN measurements m ON m.symbol = c.symbol"
        " WHERE m.purpose = 'sample' AND m.output_checked = 1"
    )
    found = rows(again.run_folder, f"{timed} AND c.origin = 'history' ORDER BY c.sample")
    # Their times now depend on where their buffers come to lie, too.
    times_before_ms = dict(rows(run.run_folder, timed))
    assert len(found) == 4 and [times_before_ms[sha256] for sha256, _ in found] == pytest.approx(best_ms, rel=0.05)
    assert len(history.schedules()) >= run.totals.samples_timed, "and what it timed is kept"
