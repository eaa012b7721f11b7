"""Why a schedule is fast, as the terminal shows it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from halide_autotune.autotune_loop.explain.explained import ExplainedFunc, Explanation, MachineLimits
from halide_autotune.sdk.display.explanation_text import print_explanation
from tests.explained_schedules import counts, func, schedule

OUT = func(counts("out", tasks=10), 1e-3, is_output=True)
BLUR = func(counts("blur", within="out", pieces=40, extents=(32, 10), points=1280), 3e-3)
WAITING = ExplainedFunc("waiting for parallel tasks to finish", time_s=1e-3, threads=0.5)
MALLOC = ExplainedFunc("halide_malloc", time_s=1e-6, threads=1.0)
BEFORE, AFTER = schedule("the default", OUT), schedule("the tuned schedule", BLUR, OUT, WAITING, MALLOC)
EXPLANATION = Explanation(
    "pi",
    "wall",
    4,
    (BEFORE, AFTER),
    MachineLimits(10e9, 200e9),
    2**20,
    ("blur: computed within out.",),
    "Memory: [full].",
)


def shown(explanation: Explanation, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    print_explanation(explanation)
    said = capsys.readouterr()
    return " ".join(said.out.split()), said.err


def test_what_limits_it_comes_first_then_what_has_changed_then_the_funcs(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = shown(EXPLANATION, capsys)
    assert err == "" and out.startswith(
        "the tuned schedule, on pi Memory: [full]. Against the default: blur: computed within out."
    )
    assert "blur within out in 40 pieces of 32x10 60 % 4.0 1.28× 8 9 kB 1.28 kB" in out
    assert "waiting for parallel tasks to finish Halide's runtime 20 % 0.5 – – – –" in out
    assert "halide_malloc" not in out, "it takes next to nothing"
    assert "the tuned schedule 5 ms 3.3 of 4 18 kB 2.28 kB 4 kB" in out
    assert out.endswith("pi, a second 10 GB 200 billion")


def test_what_is_missing_is_said_and_not_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    untimed = replace(AFTER, call_s=None, funcs=(func(counts("out")),), missing=("its Funcs are not timed: no.",))
    out, err = shown(Explanation("qemu", "simulated", 4, (BEFORE, untimed)), capsys)
    assert err == "the tuned schedule: its Funcs are not timed: no.\n"
    assert "out whole – – 1.00× 8 9 kB 1 kB" in out and "a second" not in out
