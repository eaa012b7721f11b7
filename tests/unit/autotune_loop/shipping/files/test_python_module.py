"""A shipped Python module knows the Funcs that it was made for, and says what Halide's Python cannot make."""

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


def test_the_module_names_funcs_as_the_table_of_a_pipeline_does() -> None:
    """Only a name that is a letter and digits as a whole is one that Halide has given, and the number after `$`."""
    import halide as hl

    x = hl.Var("x")
    names = ("lambda_7", "conv-b2", "conv-b2", "3x", "3x", "c1_b2", "")
    funcs = [hl.Func(name) if name else hl.Func() for name in names]
    for place, func in enumerate(funcs):
        func[x] = funcs[place - 1][x] + 1 if place else x
    rows = [FuncRow(name, 0, 0) for name in ("lambda", *names[1:-1], "f")]
    text = print_python_module(Schedule("blur", (), (), ()), "blur_host", PROVENANCE, rows)
    module: dict[str, object] = {}
    exec(compile(text, "blur_host_schedule.py", "exec"), module)
    apply_schedule = module["apply_schedule"]
    assert callable(apply_schedule)
    with pytest.warns(UserWarning, match="made with Halide told"):
        apply_schedule(hl.Pipeline([funcs[-1]]), hl.get_host_target())


def test_the_module_of_a_schedule_that_python_cannot_make_raises() -> None:
    text = print_python_module(SPECIALIZED, "blur_host", PROVENANCE, [FuncRow("f", 1, 0)])
    module: dict[str, object] = {}
    exec(compile(text, "blur_host_schedule.py", "exec"), module)
    module["check_pipeline"] = lambda *arguments: None
    apply_schedule = module["apply_schedule"]
    assert callable(apply_schedule)
    with pytest.raises(RuntimeError, match=r"blur_host reaches the pipeline's 'input', .* Use its C\+\+ header"):
        apply_schedule(None, None)
