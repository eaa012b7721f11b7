"""Reading what a run has to ship; whatever is damaged is one message."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.autotune_loop.shipping.provenance import make_provenance, provenance_comment, shipped_parameters
from halide_autotune.autotune_loop.shipping.recorded_facts import own_schedule_stays
from halide_autotune.autotune_loop.specification.objective import Objective, ObjectiveKind
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.specification.play_off_options import PlayOffOptions
from halide_autotune.autotune_loop.specification.tuning_task import published_names
from halide_autotune.autotune_loop.store.published import INCUMBENT, OWN, ScheduleTime, SpeedUp
from halide_autotune.autotune_loop.store.run_record import RunRecord, read_run_record
from halide_autotune.devices.timing.measure_settings import KernelInputs
from halide_autotune.targets.errors import RunFolderError
from tests.tuned_run_folder import read_run_schedules
from tests.unit.autotune_loop.shipping.conftest import ShippedProduct


@pytest.fixture(scope="module")
def good_run(ship_product: Callable[[str], ShippedProduct]) -> Path:
    return ship_product("product.py").runs[0]


@pytest.fixture
def run(good_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good_run, tmp_path / "run"))


def test_what_was_published_is_found_with_its_figures(run: Path) -> None:
    (found,) = read_run_schedules(run)
    published = found.facts.published
    assert published.confirmed and (published.sample, published.symbol) == ("batch_0_0/1", "product_r0_a0_s1")
    assert published.tuned is not None and published.default is not None and published.speed_up is not None
    assert published.tuned.range_ms is not None and published.tuned.processes == 8
    assert published.tuned.median_ms == pytest.approx(1.0)
    # The turns in which the default drifted: the pairs know.
    assert published.default.median_ms / published.tuned.median_ms > 4.2
    assert published.speed_up.times == pytest.approx(4.0, rel=0.01)
    assert (found.facts.samples, found.facts.clock) == (2, "wall")
    verdict = str(make_provenance(found, "0" * 16, "1.0")["verdict"])
    assert verdict == f"faster: {published.speed_up.text}" and "as fast as the default (95 % interval" in verdict


def test_a_header_that_the_run_did_not_publish_has_no_figures(run: Path) -> None:
    header = run / "samples" / f"{NAME}.schedule.h"
    text = header.read_text()
    header.write_text(f"{text}\n// by hand\n")
    with pytest.raises(RunFolderError, match="was changed after the run had published it"):
        read_run_schedules(run)
    header.write_text(text)
    assert read_run_schedules(run)


@pytest.mark.parametrize(("stays", "words"), [(OWN, "generator's own schedule"), (INCUMBENT, "header in use")])
def test_what_was_in_use_and_has_no_header_is_no_winner(run: Path, stays: str, words: str) -> None:
    (run / f"samples/{NAME}.schedule.h").unlink()
    with contextlib.closing(sqlite3.connect(run / "tuning.db")) as database, database:
        (told,) = database.execute("SELECT published FROM published").fetchone()
        row = (0, "", json.dumps({**json.loads(told), "sample": stays}), 0.0)
        database.execute("INSERT INTO published (task, header_sha256, published, at_unix_s) VALUES (?, ?, ?, ?)", row)
    with pytest.raises(RunFolderError, match=f"is nothing new to ship: the {words} is still the best") as caught:
        read_run_schedules(run)
    assert "tune longer" in caught.value.next_step


def test_nothing_of_the_machine_is_told(run: Path) -> None:
    (found,) = read_run_schedules(run)
    provenance = make_provenance(found, "0" * 16, '1.0"\\\n*/')
    told = "\n".join([*provenance_comment(provenance), *map(str, provenance.values())])
    assert "secret-board" not in told and str(run.parent) not in told
    assert provenance["sdk_version"] == "1.0???*/"
    assert str(provenance["device"]).startswith("the machine that tuned it")
    for value, kept in (("/home/me/net.bin", "net.bin"), ("C:\\me\\net.bin", "net.bin"), ("a/b/", ""), ("3", "3")):
        assert shipped_parameters({"file": value}) == {"file": kept}


def test_a_run_of_several_generators(run: Path) -> None:
    old = read_run_record(run)
    (task,) = old.spec.tasks
    files = (Path("/one.py"), Path("/two.py"))
    tasks = tuple(replace(task, reference=replace(task.reference, file=file)) for file in files)
    hashes = old.made_with.generator_sha256 * 2
    RunRecord(replace(old.spec, tasks=tasks), replace(old.made_with, generator_sha256=hashes)).write(run)
    read = read_run_record(run).spec.tasks
    assert published_names(read) == ("product", "product_argset1")
    assert tuple(task.reference.file for task in read) == files
    text = (run / "run.toml").read_text()
    for before, after in (
        ('function_name = "product"', 'function_name = "../x"'),
        (f'generator_sha256 = ["{hashes[0]}", ', "generator_sha256 = ["),
        ('[spec.tasks.parameters]\nvariant = "0"\n', "[spec.tasks]\nparameters = 3\n"),
    ):
        assert before in text
        (run / "run.toml").write_text(text.replace(before, after))
        with pytest.raises(RunFolderError, match="is damaged"):
            read_run_record(run)


def test_what_it_was_timed_with_is_kept(run: Path) -> None:
    (found,) = read_run_schedules(run)
    assert (found.inputs, found.objective) == (KernelInputs(), Objective())
    worst = Objective(ObjectiveKind.WORST, {"board": 2.0}, worst_tolerance=0.125)
    inputs = KernelInputs(7, {"input": "9x9"}, {"gain": "2"}, {"input": Path("/mine.npy")})
    old = read_run_record(run)
    options = RunOptions(inputs=inputs, play_off=PlayOffOptions(worst))
    replace(old, spec=replace(old.spec, options=options)).write(run)
    (found,) = read_run_schedules(run)
    assert found.inputs == replace(inputs, files={}), "the user's own data is left out"
    assert found.objective == worst


@pytest.mark.parametrize(
    "text", ["3", "[]", 'kind = "best"', "device_weights = {a = 0}", "worst_tolerance = nan", "worst_tolerance = -1"]
)
def test_what_is_no_objective_is_refused(run: Path, text: str) -> None:
    content = (run / "run.toml").read_text()
    table = content[content.index("[spec.options.play_off.objective]") : content.index("[spec.options.play_off.incum")]
    wrong = f"[spec.options.play_off.objective]\n{text}\n"
    if "=" not in text:
        turns = "[spec.options.play_off]\nturns = 64\n"
        content, wrong = content.replace(turns, f"{turns}objective = {text}\n"), ""
    (run / "run.toml").write_text(content.replace(table, wrong))
    with pytest.raises(RunFolderError, match=r"'spec\.options\.play_off\.objective"):
        read_run_record(run)


def test_the_words_of_a_play_off_tell_what_it_was_against(run: Path) -> None:
    (found,) = read_run_schedules(run)

    def words(**changes: Any) -> str:
        published = replace(found.facts.published, **changes)
        facts = make_provenance(replace(found, facts=replace(found.facts, published=published)), "0" * 16, "1.0")
        assert str(facts["verdict"]) in "\n".join(provenance_comment(facts))
        return str(facts["verdict"])

    stays = SpeedUp(1.0, "default")
    default = words(sample="default", speed_up=stays, reason="not proven")
    assert default == "this is the default schedule, which nothing has beaten: not proven"
    assert words(speed_up=SpeedUp(1.25, "incumbent", 1.2, 1.3)) == (
        "faster: 1.250 times as fast as the incumbent (95 % interval 1.200 to 1.300)"
    )
    assert words(reason="unopposed", speed_up=None) == "unopposed"
    once = {"confirmed": False, "tuned": ScheduleTime(1.0, 0.1), "reason": "unconfirmed"}
    gain = "1.54 times as fast as the default, one timing"
    assert words(**once, speed_up=SpeedUp(1.54, "default")) == f"unconfirmed: no play-off has decided; {gain}"
    assert words(**once, speed_up=None) == "unconfirmed: no play-off has decided"


NAME = "best.product"


def test_where_the_generators_own_schedule_stays_there_is_nothing_to_ship(run: Path) -> None:
    header = run / "samples" / f"{NAME}.schedule.h"
    assert not own_schedule_stays(header, run / "tuning.db", 0)
    with contextlib.closing(sqlite3.connect(run / "tuning.db")) as database:
        database.execute("UPDATE published SET published=json_set(published, '$.sample', 'own')")
        database.commit()
    assert own_schedule_stays(header, run / "tuning.db", 0)
    with pytest.raises(RunFolderError, match="the generator's own schedule is still the best"):
        read_run_schedules(run)


@pytest.mark.parametrize(
    "change",
    [
        f"UPDATE published SET published='{'[' * 3000}'",
        "UPDATE published SET published='{}'",
        """UPDATE published SET published=replace(published, '"median_ms": ', '"median_ms": -')""",
        """UPDATE published SET published=replace(published, '"median_ms": ', '"median_ms": 1e999, "x": ')""",
        """UPDATE published SET published=replace(published, '"confirmed": true', '"confirmed": "yes"')""",
        "UPDATE measurements SET symbol='other'",
        "UPDATE measurements SET at_unix_s=1e400",
    ],
)
def test_values_that_cannot_be_are_one_message(run: Path, change: str) -> None:
    with contextlib.closing(sqlite3.connect(run / "tuning.db")) as database:
        database.execute(change)
        database.commit()
    with pytest.raises(RunFolderError, match="tuning.db is damaged"):
        read_run_schedules(run)


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("run.toml", None, "is not a run folder"),
        ("run.toml", "[identity", "run.toml is damaged"),
        ("run.toml", "[identity]\n[settings]\n", "an earlier version of the SDK"),
        ("run.toml", "schema_version = 3\n", "the key 'spec.tasks' is missing"),
        ("run.toml", "schema_version = 4\n", "a later version of the SDK"),
        (
            "run.toml",
            ("halide_target", '"x86-64-linux-mmx9"'),
            "'spec.profile.halide_target': 'mmx9' is not a feature of a Halide target",
        ),
        ("run.toml", ("[spec.profile]\nname", '"../../etc"'), "must be the name of a profile"),
        ("run.toml", ("variant", "3"), r"'spec\.tasks\[0\]\.parameters\.variant' must be a string"),
        ("run.toml", ("variant", "[" * 3000), "run.toml is damaged"),
        ("run.toml", ("parallelism", '"2"'), r"'spec\.parallelism' must be an integer"),
        ("run.toml", ("function_name", '"a b"'), "must be the name of a C function"),
        (f"samples/{NAME}.schedule.h", None, "has no winner to ship"),
        (f"samples/{NAME}.schedule.h", "", "has no function"),
        (f"samples/{NAME}.schedule.h", b"\xff\x00", "cannot be read"),
        (
            f"samples/{NAME}.schedule.h",
            "inline void apply_schedule_product(Pipeline p, Target t) { system(); }",
            "Line 1 of the schedule header: expected",
        ),
        ("tuning.db", None, "tuning.db is missing"),
        ("tuning.db", b"no database", "tuning.db is damaged"),
        ("tuning.db", b"", "tuning.db is empty or damaged"),
    ],
)
def test_a_damaged_run_is_one_message(
    run: Path, file: str, content: str | bytes | tuple[str, str] | None, words: str
) -> None:
    path = run / file
    match content:
        case None:
            path.unlink()
        case str():
            path.write_text(content)
        case bytes():
            path.write_bytes(content)
        case (key, value):
            text = path.read_text()
            changed = re.sub(rf"(?<=[\n\[{{])({re.escape(key)} = )[^\n]*", lambda found: found[1] + value, text)
            assert changed != text
            path.write_text(changed)
    with pytest.raises(RunFolderError, match=words) as caught:
        read_run_schedules(run)
    assert caught.value.next_step and "\n" not in str(caught.value)


@pytest.mark.parametrize("seed", range(8))
def test_a_torn_database_is_one_message(run: Path, seed: int) -> None:
    path = run / "tuning.db"
    content = bytearray(path.read_bytes())
    start = len(content) * seed // 8
    content[start : start + 400] = bytes((seed * 37 + i * 11) % 256 for i in range(400))
    path.write_bytes(content[: len(content) - 1000 * (seed % 2)])
    before = sorted(run.iterdir())
    try:
        read_run_schedules(run)
    except RunFolderError as error:
        assert "tuning.db is damaged" in error.message
    assert sorted(run.iterdir()) == before


def test_the_times_at_the_sizes_are_facts(run: Path) -> None:
    (found,) = read_run_schedules(run)
    assert "sizes" not in make_provenance(found, "0" * 16, "1.0")
    tuned = ScheduleTime(4.0, 0.1, by_size_ms={"input=64x48": 16.0, "input=8x6": 1.0})
    published = replace(found.facts.published, tuned=tuned)
    facts = make_provenance(replace(found, facts=replace(found.facts, published=published)), "0" * 16, "1.0")
    assert facts["sizes"] == "16 ms at input=64x48; 1 ms at input=8x6"
    assert str(facts["tuned_from"]).endswith("geometric mean of 2 sizes")
    assert "sizes         16 ms at input=64x48; 1 ms at input=8x6" in provenance_comment(facts)
