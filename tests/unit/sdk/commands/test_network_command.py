"""`sdk network`: tables, JSON, and one sentence for what is wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType

import pytest

import halide_autotune.sdk.main as sdk_main
from halide_autotune.autotune_loop.network import models
from halide_autotune.autotune_loop.network.layer_check import CheckedLayer
from halide_autotune.autotune_loop.network.operators import Network, UnsupportedLayer
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.devices.device import Clock, Device
from halide_autotune.sdk.api.network import bench
from halide_autotune.sdk.api.network.bench import BenchedLayer, BenchedNetwork
from halide_autotune.sdk.project import preparation
from halide_autotune.targets.errors import ToolchainError
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.profile.target_features import with_target_features
from halide_autotune.targets.toolchain import zig
from tests.run_specs import make_record, make_spec

pytestmark = [pytest.mark.toolchain, pytest.mark.usefixtures("tensorflow_ready")]


def run(capsys: pytest.CaptureFixture[str], *arguments: str, command: str = "tasks") -> tuple[int, str, str]:
    code = sdk_main.main(["network", command, *arguments])
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return code, said.out, said.err


def test_the_tasks_of_a_model_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, shown, _ = run(capsys, "resnet18-convolutions")
    assert code == 0 and "convolution 3x3 of 56x56x64 to 56x56x64, relu" in shown
    assert re.search(r"12 tasks for 12 operators, [\d,]+ million operations", shown)
    code, told, _ = run(capsys, "resnet18-convolutions", "--json")
    found = json.loads(told)
    assert code == 0 and len(found["tasks"]) == 12 and found["unsupported"] == []
    assert found["tasks"][0]["settings"]["kernel_rows"] in (3, 7)


def test_layers_without_an_operator_are_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    network = Network("strange", (), (), (), (UnsupportedLayer("up", "there is no operator for Conv2DTranspose"),))
    monkeypatch.setitem(models.LISTS, "strange", Path("strange.toml"))
    monkeypatch.setattr(models, "read_operator_list", lambda path: network)
    code, _, told = run(capsys, "strange")
    assert code == 1 and "layer up: there is no operator for Conv2DTranspose." in told
    assert "the model cannot be built with them" in told


def test_what_is_no_model_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, told = run(capsys, "missing.keras")
    assert code == 1 and "There is no model missing.keras. Check the path." in told


@pytest.mark.parametrize("command", ["build", "bench"])
def test_what_cannot_be_built_is_told(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, told = run(capsys, "resnet18-convolutions", command=command)
    assert code == 1 and "resnet18-convolutions is a list of operators, not a model" in told
    code, _, told = run(capsys, "MobileNet", "--run", "nowhere", command=command)
    assert code == 1 and "nowhere is not a run folder" in told
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["build", "bench"])
def test_a_run_with_other_features_of_the_target_is_told_as_such(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tuned = RunOptions.of(target="arm64", target_features=["arm_dot_prod"])
    profile = with_target_features(load_profile("arm64"), ["arm_dot_prod"])
    for name, spec in (("plain", make_spec()), ("dot", make_spec(profile=profile, options=tuned))):
        (tmp_path / name).mkdir()
        make_record(spec).write(tmp_path / name)
    asked = ("missing.keras", "--run")
    code, _, told = run(capsys, *asked, "plain", "--target-features", "arm_dot_prod", command=command)
    assert code == 1 and "plain was tuned for arm64 without further target features, not with the target" in told
    assert "Leave out --target-features to have the run's, or tune the network with these" in told
    code, _, told = run(capsys, *asked, "dot", "--target-features", "arm_fp16", command=command)
    assert code == 1 and "dot was tuned for arm64 with the target features arm_dot_prod, not with the target" in told
    (tmp_path / "sdk.toml").write_text('[autotune]\ntarget = "x86-64"\ntarget_features = ["avx512"]\n')
    for further in ((), ("--target-features", "arm_dot_prod")):
        code, _, told = run(capsys, *asked, "dot", *further, command=command)
        assert code == 1 and "There is no model missing.keras" in told, "the run's, not the project's"


@pytest.mark.parametrize(
    ("command", "arguments", "expected"),
    [
        ("build", "--target x86-65", "There is no target profile 'x86-65'"),
        ("build", "--target arm64 --target-features avx512", "the feature 'avx512' is for x86"),
        ("build", "--target cuda-sm86", "A network is built for processors, and cuda-sm86 is for a card."),
        ("build", "--target x86-64 -o taken", "taken cannot be written"),
        ("bench", "--target x86-65", "There is no target profile 'x86-65'"),
        ("bench", "--target cuda-sm86", "A network is built for processors, and cuda-sm86 is for a card."),
        ("bench", "--device nobody", "There is no device 'nobody'"),
    ],
)
def test_what_is_wrong_beside_the_model_is_told_before_it_is_read(
    command: str,
    arguments: str,
    expected: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").touch()
    code, _, told = run(capsys, "missing.keras", *arguments.split(), command=command)
    assert code in (1, 2) and expected in told


@pytest.mark.parametrize("command", ["build", "bench"])
@pytest.mark.parametrize("looked_for", [(preparation, "find_halide_install"), (zig, "_zig_version")])
def test_a_missing_tool_is_told_before_the_model_is_read(
    looked_for: tuple[ModuleType, str],
    command: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(*arguments: str) -> None:
        raise ToolchainError("It is not installed.")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(*looked_for, missing)
    code, _, told = run(capsys, "missing.keras", "--target", "x86-64", command=command)
    assert code == 1 and "It is not installed." in told


def test_a_wrong_layer_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device("local", "local", "host", Clock.WALL, 1, uses_host_cores=True)
    right, wrong = CheckedLayer("stem+stem_relu", 1e-7), CheckedLayer("head", 0.25)
    layers = (
        BenchedLayer("stem+stem_relu", {"default": right}, {"default": 2.0}),
        BenchedLayer("head", {"default": wrong}, {"default": 0.5}),
    )
    times_ms, ranges_ms = {"default": 2.5, "TensorFlow": 5.0}, {"default": (2.25, 2.75), "TensorFlow": (4.5, 40.0)}
    failures = {"LiteRT": "no such operator"}
    found = BenchedNetwork("small", device, layers, {"default": ()}, times_ms, failures, ranges_ms=ranges_ms)
    monkeypatch.setattr(bench, "bench_network", lambda *arguments, **options: found)
    code, shown, told = run(capsys, "MobileNet", command="bench")
    assert code == 1 and re.search(r"stem and 1 more layer +2.000 ms +1.0e-07", shown)
    assert re.search(r"whole network +time of a call +fastest turn +slowest turn +against ours", shown)
    assert re.search(r"default schedules +2.500 ms +2.250 ms +2.750 ms +1.00×", shown)
    assert re.search(r"TensorFlow +5.000 ms +4.500 ms +40.00 ms +2.00×", shown) and "all as computed" not in shown
    assert "head with default schedules is off by 0.25 of the range of its numbers; at most 1e-04 is rounding." in told
    assert "LiteRT was not timed: no such operator" in told
    code, shown, _ = run(capsys, "MobileNet", "--json", command="bench")
    assert code == 1 and json.loads(shown)["layers"][1]["checks"]["default"]["is_right"] is False


def test_what_follows_from_a_wrong_layer_is_told_as_such(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    device = Device("local", "local", "host", Clock.WALL, 1, uses_host_cores=True)
    wrong, follower = CheckedLayer("stem", 0.5, 0.0), CheckedLayer("head", 0.25, 0.0, follows_from="stem")
    layers = tuple(BenchedLayer(each.name, {"default": each}, {}) for each in (wrong, follower))
    output = CheckedLayer("output 0", 0.25, 0.0, follows_from="stem")
    found = BenchedNetwork("small", device, layers, {"default": (output,)})
    monkeypatch.setattr(bench, "bench_network", lambda *arguments, **options: found)
    code, shown, told = run(capsys, "model.tflite", command="bench")
    assert code == 1 and re.search(r"head +follows from a wrong one", shown) and re.search(r"stem +5.0e-01", shown)
    assert "stem with default schedules is off by 0.5" in told and "head with default schedules is off" not in told
    assert "With default schedules these follow from a wrong layer and could not be judged: head, output 0." in told
    code, shown, _ = run(capsys, "model.tflite", "--json", command="bench")
    checks = [layer["checks"]["default"] for layer in json.loads(shown)["layers"]]
    assert code == 1 and [each["follows_from"] for each in checks] == [None, "stem"]
