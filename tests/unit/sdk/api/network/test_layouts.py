"""Layouts of weights are compared by the times of the operators' own schedules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from halide_autotune.autotune_loop.network.operators import Network, Operator, OperatorKind, Tensor
from halide_autotune.autotune_loop.network.tasks import task_key
from halide_autotune.autotune_loop.run.result import TuneResult
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.store.published import ScheduleTime
from halide_autotune.sdk.api.network import layouts
from halide_autotune.sdk.api.network.layouts import fastest_blocks
from halide_autotune.sdk.options.generator_spec import GeneratorSpec
from tests.unit.sdk.display.recorded_run import RESULT, TUNED

DENSE = Operator(OperatorKind.DENSE, ("layer",), (Tensor("t0", (8,)),), Tensor("t1", (64,)), {"block": 16})


@pytest.mark.parametrize(
    ("own_ms", "block"),
    [
        ({16: 4.0, 8: 3.5, 32: 3.0, 64: 5.0}, 32),
        # What Halide's search finds is faster than each of them, and says nothing of a block.
        ({16: 4.0, 8: 3.5}, 8),
        ({}, None),
    ],
)
def test_a_block_whose_own_schedule_has_no_time_is_not_chosen(
    own_ms: Mapping[int, float], block: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tuned(specs: list[GeneratorSpec], **asked: Any) -> TuneResult:
        found = []
        for parameters in (each for spec in specs for each in spec.argsets):
            (tried,) = (int(text.removeprefix("block=")) for text in parameters if text.startswith("block="))
            own = ScheduleTime(own_ms[tried], 0.1) if tried in own_ms else None
            found.append(replace(TUNED, published=replace(TUNED.published, own=own, default=ScheduleTime(1.0, 0.1))))
        return replace(RESULT, tuned=tuple(found))

    monkeypatch.setattr(layouts, "autotune", tuned)
    network = Network("n", DENSE.inputs, (DENSE.output,), (DENSE,))
    found = fastest_blocks(network, RunOptions(), lambda event: None, None, None)
    assert found == ({} if block is None else {task_key(DENSE): block})
