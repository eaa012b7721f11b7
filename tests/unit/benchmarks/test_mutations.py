"""The list of mutations fits the code, and what is told of them is right."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.mutations import PROJECT, Bench, Mutation, Outcome, read_list, report
from tests.process_state import await_condition

MUTATIONS = read_list()
AREAS = {"runner", "measuring", "play-off", "learning", "store", "recovery", "leases", "shipping", "search"}


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_every_mutation_still_applies_and_has_its_tests(mutation: Mutation) -> None:
    text = (PROJECT / mutation.file).read_text()
    assert mutation.applied_to(text) != text
    for test in mutation.tests:
        file, _, name = test.partition("::")
        assert (PROJECT / file).is_file() and f"def {name}" in (PROJECT / file).read_text()


def test_every_area_has_some_and_every_name_is_one() -> None:
    assert len(MUTATIONS) >= 60 and Counter(mutation.area for mutation in MUTATIONS).keys() >= AREAS
    assert [name for name, count in Counter(mutation.name for mutation in MUTATIONS).items() if count > 1] == []


def test_a_mutation_is_of_one_place() -> None:
    mutation = Mutation("area", "name", "file.py", "a", "b", ("tests",))
    assert mutation.applied_to("xay") == "xby"
    for text in ("", "aa"):
        with pytest.raises(ValueError, match="times, not once"):
            mutation.applied_to(text)


def test_a_known_outcome_is_of_the_code_and_the_tests_that_it_was_made_with(tmp_path: Path) -> None:
    mutation = Mutation("area", "name", "file.py", "a", "b", ("test_file.py::test_it",))
    (tmp_path / "file.py").write_text("a = 1")
    (tmp_path / "test_file.py").write_text("1")
    keys = {mutation.key(tmp_path)}
    for name in ("file.py", "test_file.py"):
        (tmp_path / name).write_text("a = 2")
        keys.add(mutation.key(tmp_path))
    assert len(keys) == 3


def test_tests_run_with_the_copy_and_not_with_the_checkout(tmp_path: Path) -> None:
    package = Bench(tmp_path).checkout / "src" / "halide_autotune"
    assert (package / "targets" / "errors.py").resolve().is_relative_to(tmp_path.resolve())
    assert (package / "targets" / "errors.py").is_file()


def outcome(result: str, name: str = "name", reason: str = "") -> Outcome:
    return Outcome("area", name, "key", result, reason, "told")


def test_too_few_caught_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert report([outcome("caught")] * 17 + [outcome("survived", "that one", "It is equal.")] * 3) == 0
    said = capsys.readouterr().out
    assert "| area | 17 | 3 | 0 |" in said and "17 of 20 caught: 85%" in said
    assert "survived: area: that one\n  It is equal." in said
    assert report([outcome("caught")] * 16 + [outcome("survived")] * 4) == 1
    assert report([outcome("caught")] * 16 + [outcome("broken")] * 4) == 1, "what was not tried is not caught"


@pytest.mark.toolchain
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_it_leaves_no_copy_of_the_checkout(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "benchmarks.mutations", "--only", "recovery", "--output", str(tmp_path / "out")]
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    process = subprocess.Popen(
        command, cwd=PROJECT, env={**os.environ, "TMPDIR": str(temporary)}, stderr=subprocess.PIPE, text=True
    )
    await_condition(lambda: list(temporary.glob("mutations-*/checkout/*")), "a copy of the checkout")
    process.send_signal(number)
    said = process.communicate(timeout=120)[1]
    assert process.returncode and "KeyboardInterrupt" in said
    assert list(temporary.iterdir()) == []
