"""Reading what a run has to ship; whatever is damaged is one message."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from autotune_loop.shipping.provenance import make_provenance, without_folder
from autotune_loop.shipping.recorded_times import RecordedTime
from autotune_loop.shipping.run_schedule import read_run_schedules
from autotune_loop.shipping.tuned_task import tuned_tasks
from autotune_loop.specification.objective import Objective, ObjectiveKind, objective_from_json
from autotune_loop.store.run_database import RunDatabase
from autotune_loop.store.run_record import read_run_record
from devices.timing.measure_settings import KernelInputs
from targets.errors import RunFolderError
from tests.tuned_run_folder import ESTIMATE
from tests.unit.autotune_loop.shipping.conftest import ShippedProduct


@pytest.fixture(scope="module")
def good_run(ship_product: Callable[[str], ShippedProduct]) -> Path:
    return ship_product("product.py").runs[0]


@pytest.fixture
def run(good_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good_run, tmp_path / "run"))


def test_times_come_from_the_turns_that_decided(run: Path) -> None:
    (found,) = read_run_schedules(run)
    assert found.times.tuned == RecordedTime(*map(pytest.approx, (1.0, 0.014826, 0.99, 1.01)))
    assert found.times.default == RecordedTime(*map(pytest.approx, (4.0, 0.059304, 3.96, 4.04)))
    assert found.times.confirmed and found.times.samples == 2 and found.times.clock == "wall"
    assert found.times.verdict == "faster: 4.000 times as fast (95 percent interval 0 to 5.000)"
    database = RunDatabase(run / "tuning.db")
    database.add_verdict(0, {"reason": "unconfirmed", "turns": 0, "estimate": None})
    database.close()
    (found,) = read_run_schedules(run)
    assert (found.times.tuned.median_ms, found.times.confirmed) == (pytest.approx(0.8), False)
    assert found.times.verdict == "unconfirmed"


def test_nothing_of_the_machine_is_told(run: Path) -> None:
    (found,) = read_run_schedules(run)
    provenance = make_provenance(found.record, found.task, found.times, "0" * 16, '1.0"\\\n*/')
    told = "\n".join([*provenance.comment(), *map(str, provenance.constants().values())])
    assert "secret-board" not in told and str(run.parent) not in told
    assert provenance.sdk_version == "1.0???*/"
    assert provenance.timing.device.startswith("the machine that tuned it")
    for value, kept in (("/home/me/net.bin", "net.bin"), ("C:\\me\\net.bin", "net.bin"), ("a/b/", ""), ("3", "3")):
        assert without_folder(value) == kept


def test_a_run_of_several_generators(run: Path) -> None:
    tasks = [
        {"name": name, "generator": "product", "generator_sha256": "", "function_name": "product", "parameters": {}}
        for name in ("product", "product_argset1")
    ]
    text = (run / "run.toml").read_text()
    files = json.dumps(["/one.py", "/two.py"])
    text = text.replace(
        "[settings]", f"tasks = {json.dumps(json.dumps(tasks))}\n[settings]\ngenerator_files = '{files}'"
    )
    (run / "run.toml").write_text(text)
    one, two = tuned_tasks(run, read_run_record(run))
    assert (one.name, one.index, two.name, two.index) == ("product", 0, "product_argset1", 1)
    assert (one.generator_file, two.generator_file) == (Path("/one.py"), Path("/two.py"))
    for old, new in (("product_argset1", "../x"), ('", "/two.py', ""), ('\\"parameters\\": {}', '\\"parameters\\": 3')):
        assert old in text
        (run / "run.toml").write_text(text.replace(old, new))
        with pytest.raises(RunFolderError, match="is damaged"):
            tuned_tasks(run, read_run_record(run))


def test_what_it_was_timed_with_is_kept(run: Path) -> None:
    (found,) = read_run_schedules(run)
    assert (found.inputs, found.objective) == (KernelInputs(), Objective()), "an older run does not tell"
    worst = Objective(ObjectiveKind.WORST, {"board": 2.0}, worst_tolerance=0.125)
    told = 'input_seed = \'7\'\ninput_sizes = \'{"input": "9x9"}\'\ninput_scalars = \'{"gain": "2"}\'\n[settings]'
    text = (run / "run.toml").read_text()
    (run / "run.toml").write_text(text.replace("[settings]", f"{told}\nobjective_options = '{worst.to_json()}'"))
    (found,) = read_run_schedules(run)
    assert found.inputs == KernelInputs(seed=7, sizes={"input": "9x9"}, scalars={"gain": "2"})
    assert found.objective == worst


@pytest.mark.parametrize(
    "text", ["", "[]", '["best", {}, 0]', '["mean", {"a": 0}, 0]', '["mean", {}, NaN]', "[" * 3000]
)
def test_what_is_no_objective_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        objective_from_json(text)


def test_the_words_of_a_play_off_tell_what_it_was_against(run: Path) -> None:
    def words(baseline: str, sample: int) -> str:
        (run / "samples" / f"{NAME}.benchmark.txt").write_text(f"4 ms for batch_0_0/{sample}\n")
        database = RunDatabase(run / "tuning.db")
        database.add_verdict(0, {"reason": "faster", "turns": 2, "estimate": ESTIMATE, "baseline": baseline})
        database.close()
        return read_run_schedules(run)[0].times.verdict

    default = "product_r0_a0_s0"
    assert words(default, 0).startswith("this is the default schedule; its best challenger was faster: ")
    assert "as fast as the header that was in use" in words("product_incumbent_a0", 0)
    assert words(default, 1) == "faster: 4.000 times as fast (95 percent interval 0 to 5.000)"


NAME = "best.product"


@pytest.mark.parametrize(
    "change",
    [
        """UPDATE verdicts SET verdict='{"reason": "faster", "turns": Infinity, "estimate": null}'""",
        """UPDATE verdicts SET verdict='{"reason": "faster", "turns": 1e99, "estimate": null}'""",
        f"UPDATE verdicts SET verdict='{'[' * 3000}'",
        "UPDATE measurements SET at_unix_s=1e400",
        "UPDATE measurements SET median_ms=-1",
        "UPDATE measurements SET median_ms=1e400",
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
        ("run.toml", "[identity]\n[settings]\n", "profile.* must be"),
        ("run.toml", ("halide_target", "x86-64-linux-mmx9"), "halide_target.*mmx9"),
        ("run.toml", ("profile", "../../etc"), "profile.* must be the name of a profile"),
        ("run.toml", ("argsets", "[3]"), "argsets.* must be a table"),
        ("run.toml", ("argsets", "[" * 3000), "argsets.* must be JSON"),
        ("run.toml", ("parallelism", "2'\ninput_sizes='3"), "input_sizes.* must be a table"),
        ("run.toml", ("function_name", "a b"), "function_name.* must be the name of a C function"),
        (f"samples/{NAME}.schedule.h", None, "has no winner to ship"),
        (f"samples/{NAME}.schedule.h", "", "has no function"),
        (f"samples/{NAME}.schedule.h", b"\xff\x00", "cannot be read"),
        (
            f"samples/{NAME}.schedule.h",
            "inline void apply_schedule_product(Pipeline p, Target t) { system(); }",
            "Line 1 of the schedule header: expected",
        ),
        (f"samples/{NAME}.benchmark.txt", None, "cannot be read"),
        (f"samples/{NAME}.benchmark.txt", "fast", "expected the time of a sample"),
        (f"samples/{NAME}.benchmark.txt", "1 ms for batch_7_0/1", "has no candidate batch_7_0/1"),
        (f"samples/{NAME}.benchmark.txt", "1 ms for reference/0", "has no time of product_reference_a0"),
        (f"samples/{NAME}.benchmark.txt", "1 ms for rival/0", "has no time of product_rival_a0"),
        (f"samples/{NAME}.benchmark.txt", "1 ms (wall time) for incumbent\n", "nothing new to ship for product"),
        ("tuning.db", None, "tuning.db is missing"),
        ("tuning.db", b"no database", "tuning.db is damaged"),
        ("tuning.db", b"", "tuning.db is damaged: no such table"),
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
            lines = path.read_text().splitlines()
            path.write_text("\n".join(f"{key} = '{value}'" if line.startswith(f"{key} =") else line for line in lines))
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
