"""The lineage beside a weights file: it comes back as it was, and damage is one message."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from targets.errors import WeightsError
from targets.halide_install import HalideInstall
from weights.baseline import baseline_weights
from weights.lineage import Lineage, Training, format_lineage, parse_lineage, read_lineage, write_lineage
from weights.weights_file import weights_sha256, write_weights

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_SHARE = st.none() | st.floats(0, 1)
_KINDS = {str: _TEXT, int: st.integers(0, 2**31), type(None): _SHARE}
TRAININGS = st.builds(Training, **{field.name: _KINDS[type(field.default)] for field in fields(Training)})
_OWN = [field for field in fields(Lineage) if field.name != "training"]
LINEAGES = st.builds(Lineage, training=TRAININGS, **{field.name: _KINDS[type(field.default)] for field in _OWN})


@given(lineage=LINEAGES, sha256=st.text("0123456789abcdef", min_size=64, max_size=64))
def test_what_is_written_comes_back(lineage: Lineage, sha256: str) -> None:
    assert parse_lineage(format_lineage(lineage, sha256), "x") == (lineage, sha256)


@pytest.mark.parametrize(
    ("text", "named"),
    [("samples = 'many'", "samples"), ("samples = true", "samples"), ("profile = 3", "profile"), ("= 3", "x.toml")],
)
def test_damage_is_one_message(text: str, named: str) -> None:
    with pytest.raises(WeightsError, match=named):
        parse_lineage(text, "x.toml")


def test_a_lineage_belongs_to_its_weights_alone(halide: HalideInstall, tmp_path: Path) -> None:
    weights = baseline_weights(halide.plugin_path("Adams2019"))
    path = tmp_path / "a.weights"
    write_weights(weights, path)
    assert read_lineage(path, weights_sha256(weights)) is None
    lineage = Lineage(profile="arm64", training=Training(samples=7))
    write_lineage(lineage, path)
    assert read_lineage(path, weights_sha256(weights)) == lineage
    assert read_lineage(path, "another hash") is None
