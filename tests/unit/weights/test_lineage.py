"""The lineage beside a weights file: it comes back as it was, and damage is one message."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.targets.errors import UsageError, WeightsError
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.weights.baseline import baseline_weights
from halide_autotune.weights.lineage import Lineage, Training, check_lineage_place, read_lineage, write_lineage
from halide_autotune.weights.weights_file import read_weights, weights_sha256, write_weights

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_SHARE = st.none() | st.floats(0, 1)
_KINDS = {str: _TEXT, int: st.integers(0, 2**31), type(None): _SHARE}
TRAININGS = st.builds(Training, **{field.name: _KINDS[type(field.default)] for field in fields(Training)})
_OWN = [field for field in fields(Lineage) if field.name != "training"]
LINEAGES = st.builds(Lineage, training=TRAININGS, **{field.name: _KINDS[type(field.default)] for field in _OWN})


@pytest.fixture(scope="module")
def weights_path(halide: HalideInstall, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "x.weights"
    write_weights(baseline_weights(halide.plugin_path("Adams2019")), path)
    return path


@given(lineage=LINEAGES)
def test_what_is_written_comes_back(weights_path: Path, lineage: Lineage) -> None:
    write_lineage(lineage, weights_path)
    assert read_lineage(weights_path, weights_sha256(read_weights(weights_path))) == lineage


@pytest.mark.parametrize(
    ("text", "named"),
    [("samples = 'many'", "samples"), ("samples = true", "samples"), ("profile = 3", "profile"), ("= 3", "x.toml")],
)
def test_damage_is_one_message(tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / "x.toml").write_text(f'weights_sha256 = "any"\n{text}')
    with pytest.raises(WeightsError, match=named):
        read_lineage(tmp_path / "x.weights", "any")


def test_a_lineage_belongs_to_its_weights_alone(halide: HalideInstall, tmp_path: Path) -> None:
    weights = baseline_weights(halide.plugin_path("Adams2019"))
    path = tmp_path / "a.weights"
    write_weights(weights, path)
    assert read_lineage(path, weights_sha256(weights)) is None
    lineage = Lineage(profile="arm64", training=Training(samples=7))
    write_lineage(lineage, path)
    assert read_lineage(path, weights_sha256(weights)) == lineage
    assert read_lineage(path, "another hash") is None
    (tmp_path / "a.toml").write_text("created = 2026-01-01\nprofile = 3")
    assert read_lineage(path, "another hash") is None, "somebody's own file"


def test_a_file_that_is_no_lineage_is_not_to_be_replaced(weights_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.weights"
    check_lineage_place(path)
    for text in ("", "budget = '10m'", "no TOML"):
        (tmp_path / "a.toml").write_text(text)
        with pytest.raises(UsageError, match=r"a\.weights would replace .*a\.toml, which is no lineage"):
            check_lineage_place(path)
    write_lineage(Lineage(), weights_path)
    check_lineage_place(weights_path)
