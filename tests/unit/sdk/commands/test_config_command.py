"""The command `sdk config show`, and options of one target in `sdk.toml`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.sdk.main import main
from halide_autotune.sdk.options.autotune_options import run_options
from halide_autotune.sdk.project.file import find_project
from halide_autotune.targets.errors import UsageError

PROJECT = """
budget = "2m"
default_target = "arm64"

[autotune]
batch_size = 16
hexagon_sdk_root = "hexagon"

[target.arm64]
batch_size = 8
budget = "20m"

[target.host]
batch_size = 64
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sdk.toml").write_text(PROJECT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SDK_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, tuple[Any, str]]:
    assert main(["config", "show", "--json", *arguments]) == 0
    return {row["option"]: (row["value"], row["from"]) for row in json.loads(capsys.readouterr().out)["options"]}


def test_a_targets_table_goes_over_that_of_all(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, file = shown(capsys), project / "sdk.toml"
    assert rows["--batch-size"] == (8, f"{file} [target.arm64]")
    assert rows["--budget"] == (1200.0, f"{file} [target.arm64]")
    assert rows["--target"] == ("arm64", f"{file} default_target")
    assert rows["--hexagon-sdk-root"] == (str(project / "hexagon"), f"{file} [autotune]")
    assert rows["--num-batches"][1] == "default"
    host = shown(capsys, "--target", "host")
    assert host["--batch-size"] == (64, f"{file} [target.host]") and host["--budget"] == (120.0, f"{file} budget")
    other = shown(capsys, "--target", "x86-64")
    assert other["--batch-size"] == (16, f"{file} [autotune]") and other["--target"] == ("x86-64", "--target")


def test_the_farm_and_the_inventory_of_the_file_are_shown(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = project / "sdk.toml"
    (project / "lab.toml").touch()
    file.write_text(f'inventory = "lab.toml"\n{PROJECT}\n[farm]\nscheduler = "tls://lab1:8786"\n')

    def folders() -> dict[str, tuple[Any, str]]:
        assert main(["config", "show", "--json"]) == 0
        return {row["folder"]: (row["value"], row["from"]) for row in json.loads(capsys.readouterr().out)["folders"]}

    monkeypatch.delenv("SDK_SCHEDULER", raising=False)
    found = folders()
    assert found["farm"] == ("tls://lab1:8786", f"{file} [farm]")
    assert str(found["inventory"][0]).endswith("lab.toml") and found["inventory"][1] == f"{file} inventory"
    monkeypatch.setenv("SDK_SCHEDULER", "tls://lab2:8786")
    assert folders()["farm"] == ("tls://lab2:8786", "SDK_SCHEDULER")
    file.write_text(PROJECT)
    assert folders()["inventory"] == (None, "default")


def test_what_is_typed_goes_over_all(project: Path) -> None:
    found = find_project(project)
    assert run_options({"batch_size": 4}, found).search.batch_size == 4
    assert run_options({"device": ("local",)}, found).search.batch_size == 64, "without a target it is the host's"
    assert run_options({"target": "arm64"}, found).limits.budget_s == 1200.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[target.arm65]\nbatch_size = 8", "[target.arm65] is for no target profile; the nearest is 'arm64'."),
        ("[target.arm64]\nbatch_sise = 8", "unknown key 'batch_sise' in [target.arm64]; the nearest is 'batch_size'."),
        ('[target.arm64]\ntarget = "host"', "[target.arm64] is for that target."),
        ("[target]\narm64 = 3", "target"),
        ('[target.arm64]\nbudget = "soon"', "'soon' is not a duration"),
    ],
)
def test_a_wrong_table_is_one_message(text: str, words: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "sdk.toml").write_text(text)
    assert main(["config", "show", "--target", "arm64"]) == 2
    said = capsys.readouterr()
    assert words in said.err and said.err.startswith(f"sdk: {project / 'sdk.toml'}") and said.out == ""
    with pytest.raises(UsageError):
        run_options({"target": "arm64"}, find_project(project))


def test_people_see_what_is_set_and_by_what(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"project: {project / 'sdk.toml'}\n")
    assert "--batch-size" in said and "SDK_CACHE_DIR" in said and "--num-batches" not in said
    assert main(["config", "show", "--all"]) == 0
    assert "--num-batches" in capsys.readouterr().out
    (project / "sdk.toml").unlink()
    assert main(["config", "show"]) == 0
    said = capsys.readouterr().out
    assert "There is no sdk.toml" in said and "Every option has its default" in said
