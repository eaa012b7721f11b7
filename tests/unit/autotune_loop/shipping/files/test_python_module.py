"""A schedule that Halide's Python cannot make ships as C++; its Python module says so where it is applied."""

from __future__ import annotations

import pytest

from halide_autotune.autotune_loop.schedule.directives import ComputeAt
from halide_autotune.autotune_loop.schedule.model import ByName, Parameter, Schedule, ScheduledFunc, StageSchedule
from halide_autotune.autotune_loop.schedule.values import ROOT, Expression
from halide_autotune.autotune_loop.shipping.files.func_table import FuncRow
from halide_autotune.autotune_loop.shipping.files.python_module import print_python_module

PLANAR = Expression("==", (Expression("stride"), 1))
SPECIALIZED = Schedule(
    "blur",
    (ScheduledFunc("f", ByName("f")),),
    (),
    (StageSchedule("f", None, (), (PLANAR,)), StageSchedule("f", None, (ComputeAt(ROOT),))),
    None,
    (Parameter("stride", "input", "stride.0"),),
)
FACTS = dict.fromkeys(
    "generator parameters algorithm_hash target_profile halide_target halide_version autoscheduler sdk_version device "
    "device_fingerprint tuned_from verdict samples date".split(),
    "told",
)
PROVENANCE = {
    **FACTS,
    "clock": "wall",
    "default_ms": None,
    "tuned_ms": 1.5,
    "tuned_spread_ms": 0.1,
    "tuned_low_ms": None,
}


def test_the_module_of_a_schedule_that_python_cannot_make_raises() -> None:
    text = print_python_module(SPECIALIZED, "blur_host", PROVENANCE, [FuncRow("f", 1, 0)])
    module: dict[str, object] = {}
    exec(compile(text, "blur_host_schedule.py", "exec"), module)
    module["check_pipeline"] = lambda *arguments: None
    apply_schedule = module["apply_schedule"]
    assert callable(apply_schedule)
    with pytest.raises(RuntimeError, match=r"blur_host reaches the pipeline's 'input', .* Use its C\+\+ header"):
        apply_schedule(None, None)
