"""A schedule as JSON: what is written is read again, what is damaged is refused by its place."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune_loop.schedule.parse import parse_schedule
from autotune_loop.schedule.print_json import from_dict, to_dict
from targets.errors import GeneratorError

EMITTED = (Path(__file__).parent / "headers" / "convolution_layer_py0_cuda_anderson1.schedule.h").read_text()
DATA = to_dict(parse_schedule(EMITTED))
JSON_VALUES = st.none() | st.booleans() | st.integers(-3, 2**40) | st.text(max_size=5) | st.just([]) | st.just({})


def test_it_is_plain_and_has_a_version() -> None:
    assert (DATA["format"], DATA["version"]) == ("halide-schedule", 1)
    assert json.loads(json.dumps(DATA)) == DATA
    assert DATA["stages"][0]["directives"][0] == {
        "kind": "split",
        "old": "c",
        "outer": "c",
        "inner": "ci",
        "factor": 16,
        "tail": "ShiftInwards",
    }


def places(value: Any) -> list[list[Any]]:
    """The path of every value inside `value`."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [[key, *rest] for key, item in items for rest in ([], *places(item))]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(places(DATA)), JSON_VALUES)
def test_a_damaged_value_is_refused_or_another_schedule(path: list[Any], value: Any) -> None:
    damaged = copy.deepcopy(DATA)
    holder: Any = damaged
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    try:
        read = from_dict(damaged)
    except GeneratorError as error:
        assert error.next_step
    else:
        assert to_dict(read) == damaged


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"version": 2}, "key 'version'"),
        ({"version": True}, "key 'version'"),
        ({"format": "other"}, "key 'format'"),
        ({"more": 1}, "unknown key 'more'"),
        ({"stages": {}}, "key 'stages'"),
        (
            {"stages": [{"func": "output", "update": None, "directives": [{"kind": "explode"}]}]},
            r"key 'stages\[0\].directives\[0\].kind'",
        ),
        (
            {"funcs": [{"identifier": "f", "origin": {"kind": "by_index", "index": 1.5}}]},
            r"key 'funcs\[0\].origin.index'",
        ),
    ],
)
def test_the_place_is_told(change: dict[str, Any], place: str) -> None:
    with pytest.raises(GeneratorError, match=f"damaged: {place}"):
        from_dict({**DATA, **change})
