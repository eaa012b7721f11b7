"""`sdk network tasks`: a table, JSON, and one sentence for what is wrong."""

from __future__ import annotations

import json
import re

import pytest

import halide_autotune.sdk.main as sdk_main
from halide_autotune.autotune_loop.network import models
from halide_autotune.autotune_loop.network.operators import Network, UnsupportedLayer

pytestmark = [pytest.mark.toolchain, pytest.mark.usefixtures("tensorflow_ready")]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = sdk_main.main(["network", "tasks", *arguments])
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
    monkeypatch.setitem(models._SETS, "strange", lambda: network)
    code, _, told = run(capsys, "strange")
    assert code == 1 and "layer up: there is no operator for Conv2DTranspose." in told
    assert "the model cannot be built with them" in told


def test_what_is_no_model_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, told = run(capsys, "missing.keras")
    assert code == 1 and "There is no model missing.keras. Check the path." in told
