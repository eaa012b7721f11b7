"""Machines with different versions are told apart, and what the other side says of itself is not trusted."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.autotune_loop.farm.versions import FarmVersions, check_versions, own_versions
from halide_autotune.targets.errors import FarmError

MINE = FarmVersions("1.2.3 (code 12ab)", "21.0.0", "2026.8.0", "3.11", {"adams2019": "a" * 64, "li2018": "b" * 64})


def test_this_machine_agrees_with_itself() -> None:
    own = own_versions(builds=True)
    assert own.plugins and {"adams2019", "mullapudi2016"} <= set(own.plugins)
    check_versions(own, FarmVersions.from_fields(dataclasses.asdict(own)), "the scheduler", "worker lab1")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"halide": "20.0.0"}, r"Halide: 21.0.0 on the scheduler, 20.0.0 on worker lab2. .*pip install 'halide==21"),
        ({"sdk": "1.2.3 (code ff00)"}, r"SDK: 1.2.3 \(code 12ab\) on the scheduler, 1.2.3 \(code ff00\) on worker"),
        ({"distributed": "2025.1"}, "Dask: 2026.8.0 on the scheduler, 2025.1 on worker"),
        ({"plugins": {"adams2019": "a" * 64, "li2018": "c" * 64}}, "plug-in li2018: bbbbbbbbbbbb .* cccccccccccc on"),
        ({"plugins": {"li2018": "b" * 64}}, "plug-in adams2019: aaaaaaaaaaaa on the scheduler, none on worker lab2"),
    ],
)
def test_a_difference_is_refused_with_both_sides(change: dict[str, Any], expected: str) -> None:
    its = dataclasses.replace(MINE, **change)
    with pytest.raises(FarmError, match=f"Worker lab2 differs from the scheduler. .*{expected}"):
        check_versions(MINE, its, "the scheduler", "worker lab2")


def test_plugins_of_one_that_builds_nothing_do_not_matter() -> None:
    check_versions(MINE, dataclasses.replace(MINE, plugins=None), "the scheduler", "worker lab2")


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary(),
    lambda inner: st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=3,
)


@given(st.dictionaries(st.sampled_from(["sdk", "halide", "distributed", "python", "plugins"]), anything) | anything)
def test_whatever_is_sent_is_versions_or_a_message(fields: object) -> None:
    try:
        read = FarmVersions.from_fields(fields)
    except FarmError:
        return
    assert all(text.isprintable() and len(text) < 200 for text in (read.sdk, read.halide, *(read.plugins or ())))
