"""A loop nest as a tree of rows: each loop with what is around it, and what it does itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from halide_autotune.autotune_loop.lowered.loop_rows import LOOP_ROW_NAMES, SCALE, LoopRows, loop_rows
from halide_autotune.targets.lowering.loop_nest import VERSION, Access, Allocation, Computation, Loop, LoopNest

STORE = Access("f", 1, (), True, False, 8, 4, 1, (1024.0, 8.0))
HEAP = Allocation("g", 4096.0, False, "heap")


def loop(extent: float | None, *inside: Loop, kind: Any = "serial", **body: Any) -> Loop:
    computations = (Computation("f", body.get("operations", {}), body.get("accesses", ())),)
    return Loop("f.x", "f", kind, extent, body.get("branches", 0), computations, body.get("allocations", ()), inside)


def rows_of(*loops: Loop, cores: int = 4) -> LoopRows:
    return loop_rows(LoopNest(VERSION, 32, loop(1, *loops, kind="root")), cores)


def number(rows: LoopRows, place: int, name: str) -> float:
    return float(2.0 ** (SCALE * rows.rows[place][LOOP_ROW_NAMES.index(name)]) - 1.0)


def test_each_loop_comes_after_the_one_around_it() -> None:
    inner = loop(8, operations={"float_add": 2.0}, accesses=(STORE,))
    rows = rows_of(loop(100, inner, kind="parallel", allocations=(HEAP,)), loop(3, kind="branch"))
    assert rows.parents == (-1, 0, 1, 0)
    assert len({*LOOP_ROW_NAMES}) == len(LOOP_ROW_NAMES) == rows.rows.shape[1]
    kinds = [LOOP_ROW_NAMES[int(np.argmax(row[:7]))] for row in rows.rows]
    assert kinds == ["root", "parallel", "serial", "branch"]
    assert number(rows, 1, "heap bytes") == pytest.approx(4096, rel=1e-4)
    assert number(rows, 2, "float_add") == pytest.approx(2, rel=1e-4)
    assert number(rows, 2, "dense stores") == pytest.approx(1, rel=1e-4)


def test_work_is_counted_over_all_loops_around_and_shared_by_the_cores() -> None:
    inner = loop(8, operations={"float_add": 2.0})
    rows = rows_of(loop(6, loop(5, inner, kind="parallel"), kind="parallel"), cores=4)
    assert number(rows, 3, "iterations") == pytest.approx(240, rel=1e-4)
    assert number(rows, 3, "iterations on the critical path") == pytest.approx(2 * 5 * 8, rel=1e-4), "two rounds of six"
    assert number(rows, 3, "operations") == pytest.approx(480, rel=1e-4)
    assert number(rows, 3, "operations on the critical path") == pytest.approx(160, rel=1e-4)


def test_what_data_decides_and_what_is_not_known_by_name_is_no_trouble() -> None:
    rows = rows_of(loop(None, operations={"a_new_kind": 3.0}, allocations=(Allocation("g", None, False, "stack"),)))
    assert np.isfinite(rows.rows).all()
    assert number(rows, 1, "operations of the body") == pytest.approx(3, rel=1e-4)
