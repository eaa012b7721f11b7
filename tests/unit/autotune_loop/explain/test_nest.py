"""Funcs lie inside the loops that they are computed in, with their shares."""

from __future__ import annotations

import pytest

from halide_autotune.autotune_loop.explain.nest import nest
from tests.explained_schedules import counts, func, schedule

OUT = counts("out", tasks=3)
TILE, ROW = counts("tile", within="out", pieces=40), counts("row", within="tile", pieces=400)
TABLE = counts("table", loaded_bytes=2000)


def test_shares_are_of_the_time_and_contain_what_is_inside() -> None:
    one, other = nest(schedule("tuned", func(OUT, 2e-3), func(TILE, 5e-3), func(ROW, 1e-3), func(TABLE, 2e-3)))
    assert (one.name, one.own_share, one.share, one.heat) == ("out", 0.2, pytest.approx(0.8), 2)
    (tile,) = one.inside
    assert (tile.name, tile.own_share, tile.heat, tile.inside[0].name) == ("tile", 0.5, 4, "row")
    assert tile.place == "computed within out in 40 pieces of 100x10"
    assert (other.name, other.share, other.inside) == ("table", 0.2, ())


def test_without_times_shares_are_of_what_is_loaded() -> None:
    one, other = nest(schedule("tuned", func(TABLE), func(counts("out", loaded_bytes=6000))))
    assert (one.name, one.own_share, other.own_share) == ("out", 0.75, 0.25)


def test_a_func_that_is_said_to_be_inside_itself_is_not_drawn() -> None:
    circle = nest(schedule("tuned", func(counts("a", within="b"), 1e-3), func(counts("b", within="a"), 1e-3)))
    assert circle == ()
    (lost,) = nest(schedule("tuned", func(counts("a", within="nowhere"), 1e-3)))
    assert lost.name == "a"
