"""From what a user typed to resolved parts."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.sdk.project.preparation import (
    check_function_name,
    free_run_folder,
    open_named_generator,
    open_workbench,
)
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import GeneratorError, UsageError
from halide_autotune.targets.values.texts import parse_duration_s
from tests.process_state import has_ended


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("10m", 600), ("1.5h", 5400), (" 2m ", 120), ("0.5s", 0.5), ("007", 7)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "0", "0s", "0.0h", "-5", "5 m", "m", "1h30m", "1e3", "5d", "５m", "nan", "inf", "1."]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a duration") as caught:
        parse_duration_s(text)
    assert "90s, 10m or 1.5h" in caught.value.next_step


@given(st.text(max_size=12))
def test_any_text_is_a_positive_duration_or_a_usage_error(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert parse_duration_s(text) > 0


@pytest.mark.parametrize("name", ["blur", "B2", "a_b_", "x" * 64])
def test_function_names(name: str) -> None:
    assert check_function_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "9x", "_x", "a-b", "a b", "é", "a\n", "../x", "a;b", "int", "while", "class", "a::", "::a", "a:b"]
)
def test_what_is_no_function_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be a function's name"):
        check_function_name(name)


def test_a_run_folder_that_is_free(tmp_path: Path) -> None:
    assert free_run_folder(tmp_path, "blur", "arm64") == tmp_path / "tuned" / "blur-arm64-1"
    (tmp_path / "tuned" / "blur-arm64-1").mkdir(parents=True)
    (tmp_path / "tuned" / "blur-arm64-2").touch()
    assert free_run_folder(tmp_path, "blur", "arm64").name == "blur-arm64-3"


def test_a_wrong_name_leaves_no_generator_running(settings: Settings, examples: Path) -> None:
    workbench = open_workbench(settings)
    file = examples / "separable_filter.py"
    with open_named_generator(str(file), ["radius=1"], workbench, settings) as (reference, _):
        assert (reference.name, reference.parameters) == ("separable_filter", {"radius": "1"})
    before = _children()  # among them what ends programs whose SDK is killed, which begins with the first program
    with (
        pytest.raises(GeneratorError, match="no generator 'blurr', only: separable_filter"),
        open_named_generator(f"{file}:blurr", (), workbench, settings),
    ):
        pass
    assert all(has_ended(pid) for pid in _children() - before)


def _children() -> set[int]:
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread of another test has just ended
            found.update(int(pid) for pid in (task / "children").read_text().split())
    return found
