"""Each option of a run, followed from its declaration to every place that has it."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st

from docs.draw_options import PAGE
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.store.run_record import read_run_record
from halide_autotune.sdk.main import main, make_application
from halide_autotune.sdk.options.autotune_options import project_options
from halide_autotune.sdk.options.resume_options import resumed_options
from halide_autotune.sdk.project.file import FILE_NAME, find_project
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.values.options import DeclaredOption, option_of, options_of, value_at
from halide_autotune.targets.values.records import plain, toml_text
from tests.option_values import option_values
from tests.run_specs import make_record, make_spec

OPTIONS = options_of(RunOptions)
FLAGGED = [option for option in OPTIONS if option.facts.flags]
each_option = pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.keyword)
each_flag = pytest.mark.parametrize("option", FLAGGED, ids=lambda option: option.keyword)


@pytest.fixture(scope="module")
def parameters() -> dict[str, Any]:
    """Of `sdk autotune`, by their names."""
    command: Any = typer.main.get_command(make_application())
    return {parameter.name: parameter for parameter in command.commands["autotune"].params}


def test_keywords_and_keys_are_unique() -> None:
    for names in ([option.keyword for option in OPTIONS], [option.file_key for option in OPTIONS]):
        assert len(set(names)) == len(names)


@each_flag
def test_it_is_an_option_of_the_command(option: DeclaredOption, parameters: dict[str, Any]) -> None:
    parameter = parameters[option.keyword]
    assert tuple(parameter.opts) == option.facts.flags
    assert (parameter.help, parameter.metavar) == (option.facts.help, option.facts.metavar or None)


def test_the_help_has_every_flag(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["autotune", "--help"]) == 0
    words = set(shlex.split(capsys.readouterr().out.replace("'", " ").replace('"', " ").replace(",", " ")))
    assert {flag for option in FLAGGED for flag in option.facts.flags} <= words


@each_option
def test_the_default_is_what_the_command_shows(option: DeclaredOption) -> None:
    if option.facts.shown:
        assert option.read(option.facts.shown) == option.default
    assert option.read(option.default) == option.default
    assert value_at(RunOptions(), option) == option.default


@each_option
@settings(max_examples=6)
@given(st.data())
def test_python_run_toml_and_the_projects_file_take_it(option: DeclaredOption, data: st.DataObject) -> None:
    value = data.draw(option_values(option))
    options = RunOptions.of(**{option.keyword: value})
    assert value_at(options, option) == option.read(value)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        record = make_record(make_spec(options=options))
        record.write(folder)
        assert read_run_record(folder).spec.options == options
        assert resumed_options(record, {option.keyword: value}) == options
        (folder / FILE_NAME).write_text(toml_text({"autotune": {option.file_key: plain(value)}}))
        read = project_options(find_project(folder))
    is_path = option.keyword in ("target", "weights") and "/" in (value or "")
    assert read == options or is_path, "which is relative to the file"


@each_option
def test_the_documentation_lists_it(option: DeclaredOption) -> None:
    rows = [line for line in PAGE.read_text().splitlines() if f"| `{option.keyword}` |" in line]
    assert len(rows) == 1
    assert option.facts.help.replace("|", "\\|") in rows[0]
    assert all(flag in rows[0] for flag in option.facts.flags)


def test_paths_of_the_projects_file_are_relative_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / FILE_NAME).write_text(
        '[autotune]\ninventory = "lab.toml"\nhexagon_sdk_root = "/opt/sdk"\nincumbent = {blur = "now.h"}\n'
    )
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    options = project_options(find_project(Path.cwd()))
    assert options.devices.inventory == tmp_path / "lab.toml"
    assert options.devices.hexagon_sdk_root == Path("/opt/sdk")
    assert options.play_off.incumbents == {"blur": tmp_path / "now.h"}


@pytest.mark.parametrize(
    ("text", "target", "weights"),
    [
        ('default_target = "boards/pi.toml"', "HERE/boards/pi.toml", None),
        ('[autotune]\ntarget = "pi.toml"\nweights = "pi.weights"', "HERE/pi.toml", "HERE/pi.weights"),
        ('default_target = "/etc/pi.toml"\n[autotune]\nweights = "arm64@pi4"', "/etc/pi.toml", "arm64@pi4"),
        ('default_target = "arm64"\n[autotune]\nweights = "baseline"', "arm64", "baseline"),
    ],
)
def test_a_target_and_weights_that_are_paths_are_relative_to_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, target: str, weights: str | None
) -> None:
    (tmp_path / FILE_NAME).write_text(text)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    options = project_options(find_project(Path.cwd()))
    expected = [None if each is None else each.replace("HERE", str(tmp_path)) for each in (target, weights)]
    assert [options.devices.target, options.learn.weights] == expected


@pytest.mark.parametrize(("keyword", "value"), [("budget_s", ["10m"]), ("sizes", "in=64x48"), ("device", "pi")])
def test_one_where_many_are_meant_and_many_where_one_is(keyword: str, value: object) -> None:
    label = option_of(RunOptions, keyword).label
    with pytest.raises(UsageError, match=f"{label} must be "):
        RunOptions.of(**{keyword: value})
