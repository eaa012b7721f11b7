"""`sdk weights`: list, show, diff, evaluate, import and export, for real."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import halide_autotune.sdk.main as sdk_main
from halide_autotune.autotune_loop.store.sample_file import Sample, write_sample
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.weights.arithmetic import perturb_weights
from halide_autotune.weights.baseline import baseline_weights
from halide_autotune.weights.weights_file import read_weights, weights_sha256, write_weights
from tests.unit.autotune_loop.store.test_featurization import random_featurization


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SDK_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def trained(halide: HalideInstall, tmp_path: Path) -> Path:
    path = tmp_path / "trained.weights"
    write_weights(perturb_weights(baseline_weights(halide.plugin_path("Adams2019")), 0.05, 1), path)
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = sdk_main.main(["weights", *(str(argument) for argument in arguments)])
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return code, said.out, said.err


def test_weights_are_imported_listed_shown_compared_and_exported(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone, listed = run(capsys), run(capsys, "list")
    assert alone == listed and alone[0] == 0 and "the SDK" in alone[1]
    assert run(capsys, "--json", "list")[1] == run(capsys, "--json")[1]
    options = ("--target", "arm64", "--device", "pi4", "--note", "a first try")
    assert run(capsys, "import", trained, *options)[0] == 0
    code, _, said = run(capsys, "import", trained, *options)
    assert code == 2 and "arm64@pi4" in said and "--replace" in said
    assert run(capsys, "import", trained, *options, "--replace")[0] == 0
    (entry,) = [entry for entry in json.loads(run(capsys, "--json")[1])["weights"] if not entry["shipped"]]
    assert (entry["name"], entry["note"], entry["network"]) == ("arm64@pi4", "a first try", "Adams2019")
    assert "arm64@pi4" in run(capsys)[1]
    shown = run(capsys, "show", "arm64@pi4")[1].splitlines()
    assert [line[:16].rstrip() for line in shown] == "name|file|sha256|network|feature version|timed on|note".split("|")
    assert {line[17:] for line in shown} >= {"arm64@pi4", entry["sha256"], "arm64, device pi4", "a first try"}
    assert json.loads(run(capsys, "show", "arm64@pi4", "--json")[1]) == entry
    changes = json.loads(run(capsys, "diff", "baseline", "arm64@pi4", "--json")[1])
    assert not changes["equal"] and all(0.01 < change < 0.1 for change in changes["relative_change"].values())
    assert json.loads(run(capsys, "diff", "arm64@pi4", trained, "--json")[1])["equal"]
    assert run(capsys, "export", "arm64@pi4", "-o", "carried.weights")[0] == 0
    assert weights_sha256(read_weights(tmp_path / "carried.weights")) == entry["sha256"]
    assert run(capsys, "import", "carried.weights", "--replace")[1].startswith("arm64@pi4:")


def test_what_is_exported_is_of_one_origin(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "trained.nests.npz").write_bytes(b"nests")
    run(capsys, "import", trained, "--target", "arm64", "--device", "pi4", "--note", "a first try")
    assert run(capsys, "export", "arm64@pi4", "-o", "x.weights")[1] == "x.weights and x.toml and x.nests.npz\n"
    told = json.loads(run(capsys, "show", "x.weights", "--json")[1])
    assert (told["profile"], told["device"], told["note"]) == ("arm64", "pi4", "a first try")
    assert run(capsys, "export", "x.weights", "-o", "y.weights")[0] == 0
    assert (tmp_path / "y.toml").read_text() == (tmp_path / "x.toml").read_text()
    assert (tmp_path / "y.nests.npz").read_bytes() == b"nests"
    assert run(capsys, "export", "baseline", "-o", "x.weights")[1] == "x.weights and x.toml\n"
    assert not (tmp_path / "x.nests.npz").exists(), "it was of other weights"


def test_a_file_of_ones_own_is_not_replaced_by_a_lineage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sdk.toml").write_text('budget = "10m"\n')
    code, out, said = run(capsys, "export", "baseline", "-o", "sdk.weights")
    assert (code, out) == (2, "") and "would replace sdk.toml" in said and "--output" in said
    assert (tmp_path / "sdk.toml").read_text() == 'budget = "10m"\n' and not (tmp_path / "sdk.weights").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("show", "nobody"), 1, "no weights named 'nobody'"),
        (("show", "gone.weights"), 1, "gone.weights cannot be read"),
        (("import", "gone.weights", "-t", "arm64"), 1, "gone.weights cannot be read"),
        (("import", "trained.weights"), 2, "--target"),
        (("import", "trained.weights", "-t", "arm46"), 1, "arm64"),
        (("import", "trained.weights", "-t", "arm64", "--device", "../x"), 1, "cannot name weights"),
        (("export", "baseline", "-o", "x.txt"), 1, "end in .weights"),
        (("evaluate", "baseline", "--on", "nowhere"), 1, "nowhere has no .sample files"),
        (("diff", "baseline"), 2, "Missing argument"),
    ],
)
def test_wrong_use_is_one_message(
    arguments: tuple[str, ...], code: int, words: str, trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    got, out, said = run(capsys, *arguments)
    assert (got, out) == (code, ""), said
    assert words in said


@pytest.mark.toolchain
def test_weights_are_scored_beside_the_baseline(settings: Settings, trained: Path, tmp_path: Path) -> None:
    pipeline = random_featurization(seed=0).pipeline_features
    for index in range(12):
        made = replace(random_featurization(seed=index), pipeline_features=pipeline)
        write_sample(Sample(made, 1.0 + index, 77, index), tmp_path / f"{index}.sample")
    command = [
        sys.executable,
        "-m",
        "halide_autotune.sdk.main",
        "weights",
        "evaluate",
        str(trained),
        "--on",
        str(tmp_path),
        "--json",
    ]
    alone = subprocess.run(command, env=dict(settings.environment), capture_output=True, text=True, check=False)
    assert alone.returncode == 2 and "--parallelism" in alone.stderr
    done = subprocess.run(
        [*command, "--parallelism", "4"], env=dict(settings.environment), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    scores = json.loads(done.stdout)
    assert [score["weights"] for score in scores] == [str(trained), "baseline"]
    assert all(0 <= score["pairwise_accuracy"] <= 1 for score in scores)
