"""The reports of a check, as other tools read them."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.autotune_loop.shipping.gate.checked_schedule import CheckedSchedule, GateResult, GateVerdict
from halide_autotune.autotune_loop.shipping.gate.reports import junit_xml, markdown
from halide_autotune.autotune_loop.store.published import SpeedUp

KEPT = CheckedSchedule(
    "blur.pi.schedule.h",
    "arm64",
    GateVerdict.KEPT,
    device="pi5",
    promised=2.0,
    speed_up=SpeedUp(1.98, "default", 1.95, 2.01),
    shipped_ms=0.5,
    now_ms=0.51,
    clock="wall",
)
SLOWER = CheckedSchedule("b.h", "arm64", GateVerdict.SLOWER, "It is 1.2 | <slower>.", "pi5", 2.0)
ALL = [CheckedSchedule("b.h", "arm64", verdict, "Why.") for verdict in GateVerdict]


def test_a_ci_server_reads_a_case_for_each_schedule() -> None:
    suite = ElementTree.fromstring(junit_xml(GateResult((KEPT, SLOWER), ("x.h is missing.",)), "schedules"))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors"), suite.get("skipped")) == (
        "3",
        "2",
        "0",
        "0",
    )
    assert [case.get("name") for case in suite] == ["blur.pi.schedule.h on pi5", "b.h on pi5", "x.h is missing."]
    failure = suite[1].find("failure")
    assert failure is not None and failure.get("message") == SLOWER.message and failure.get("type") == "slower"


def test_what_decides_nothing_is_no_failure_of_the_schedule() -> None:
    suite = ElementTree.fromstring(junit_xml(GateResult(tuple(ALL)), "schedules"))
    assert (suite.get("failures"), suite.get("errors"), suite.get("skipped")) == ("3", "2", "1")


@given(st.text(), st.text())
def test_any_text_is_readable(header: str, message: str) -> None:
    result = GateResult((CheckedSchedule(header, "arm64", GateVerdict.WRONG, message),), (message,), (message,))
    ElementTree.fromstring(junit_xml(result, header))
    rows = [line for line in markdown(result, header).splitlines() if line.startswith("| ")]
    assert len(rows) == 2 and all(row.replace("\\\\", "").replace("\\|", "").count("|") == 8 for row in rows)


def test_a_pull_request_has_the_figures() -> None:
    lines = markdown(GateResult((KEPT, SLOWER)), "schedules").splitlines()
    assert lines[0] == "### Schedules in schedules: slower"
    assert lines[4] == (
        "| blur.pi.schedule.h | arm64 | pi5 | ok | 1.980 (1.950 to 2.010) | 2.000 | 0.51 ms, 0.5 ms when shipped |"
    )
    assert lines[-1] == "- b.h: It is 1.2 \\| &lt;slower>."


@pytest.mark.parametrize("first", ALL)
def test_the_worst_is_the_folders(first: CheckedSchedule) -> None:
    assert GateResult((ALL[-1], first)).verdict is first.verdict


def test_exit_codes_are_as_documented() -> None:
    codes = {verdict.value: verdict.exit_code for verdict in GateVerdict}
    assert codes == {
        "wrong": 3,
        "stale": 4,
        "slower": 5,
        "undecided": 6,
        "no device": 7,
        "not timed": 0,
        "ok": 0,
    }
    assert GateResult((), ("x.h is missing.",)).verdict.exit_code == 4
    assert GateResult(()).verdict.exit_code == 0
