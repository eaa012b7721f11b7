"""The values of a tuned parameter, as users write them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.autotune_loop.parameters.tuned_parameter import parse_tune, parse_tuned_parameter
from halide_autotune.targets.errors import UsageError


@pytest.mark.parametrize(
    ("text", "values", "is_ordered"),
    [
        ("16..512:x2", ("16", "32", "64", "128", "256", "512"), True),
        ("8..64:8", ("8", "16", "24", "32", "40", "48", "56", "64"), True),
        ("8..40:+16", ("8", "24", "40"), True),
        ("1..4", ("1", "2", "3", "4"), True),
        ("0.5..2:x2", ("0.5", "1", "2"), True),
        ("-2..2:2", ("-2", "0", "2"), True),
        ("16,8", ("8", "16"), True),
        ("true,false", ("true", "false"), False),
        ("rows,tiles,4", ("rows", "tiles", "4"), False),
    ],
)
def test_ranges_and_lists(text: str, values: tuple[str, ...], is_ordered: bool) -> None:
    parameter = parse_tuned_parameter("tile", text)
    assert parameter.values == values and parameter.is_ordered is is_ordered


@given(low=st.integers(1, 10**6), factor=st.integers(2, 50), doublings=st.integers(1, 20))
def test_a_geometric_range_multiplies_until_its_end(low: int, factor: int, doublings: int) -> None:
    high = low * factor**doublings
    if high >= 10**12:
        return
    values = [int(value) for value in parse_tuned_parameter("n", f"{low}..{high}:x{factor}").values]
    assert values[0] == low and values[-1] == high
    assert all(after == before * factor for before, after in itertools.pairwise(values))


@given(low=st.integers(-(10**6), 10**6), step=st.integers(1, 1000), count=st.integers(1, 200), more=st.integers(0, 999))
def test_a_linear_range_never_passes_its_end(low: int, step: int, count: int, more: int) -> None:
    high = low + count * step + more % step
    values = [int(value) for value in parse_tuned_parameter("n", f"{low}..{high}:+{step}").values]
    assert values == list(range(low, high + 1, step))


@given(st.text(max_size=30))
def test_any_text_gives_values_or_one_clear_sentence(text: str) -> None:
    try:
        parameter = parse_tuned_parameter("tile", text)
    except UsageError as error:
        assert "--tune tile=" in error.message
    else:
        assert len(set(parameter.values)) == len(parameter.values) >= 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("512..16:x2", "is empty: 512 is above 16"),
        ("0..16:x2", "has no end"),
        ("1..16:x1", "has no end"),
        ("1..16:0", "has no end"),
        ("1..16:-2", "has no end"),
        ("1..100000", "more than 4096 values"),
        ("8,8", "has 8 twice"),
        ("8", "has only one value"),
        ("8..8", "has only one value"),
        ("8..16:z2", "'8..16:z2' is neither a value nor a range"),
        ("8,,16", "'' is neither a value nor a range"),
    ],
)
def test_what_is_wrong_is_said(text: str, message: str) -> None:
    with pytest.raises(UsageError, match="^--tune tile=") as caught:
        parse_tuned_parameter("tile", text)
    assert message in caught.value.message and caught.value.message.endswith(".")


def test_several_parameters() -> None:
    assert parse_tune(["x=1..4", "order=rows,tiles"]) == {"x": "1..4", "order": "rows,tiles"}
    with pytest.raises(UsageError, match="the parameter x twice"):
        parse_tune(["x=1..4", "x=8,9"])
    with pytest.raises(UsageError, match="must have the form name=values"):
        parse_tune(["x"])
    with pytest.raises(UsageError, match="cannot be a generator parameter"):
        parse_tune(["9x=1,2"])
