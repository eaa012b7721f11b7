"""What a check finds, as other tools read it: JUnit's XML for CI servers, Markdown for pull requests."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, tostring

from halide_autotune.autotune_loop.shipping.gate.checked_schedule import CheckedSchedule, GateResult, GateVerdict
from halide_autotune.autotune_loop.store.published import DEFAULT, words_for
from halide_autotune.targets.values.texts import printable

# What CI servers make of the verdicts: a failure is the schedule's, an error is of the check itself.
_ELEMENTS = {
    GateVerdict.WRONG: "failure",
    GateVerdict.STALE: "failure",
    GateVerdict.SLOWER: "failure",
    GateVerdict.UNDECIDED: "error",
    GateVerdict.NO_DEVICE: "error",
    GateVerdict.NOT_TIMED: "skipped",
}


def junit_xml(result: GateResult, folder: str) -> str:
    """A test suite with a case for each schedule and device, as Jenkins, GitLab and GitHub's actions read it."""
    suite = Element(
        "testsuite", name=printable(f"sdk check {folder}"), tests=str(len(result.schedules) + len(result.problems))
    )
    for one in result.schedules:
        case = SubElement(suite, "testcase", classname=one.target, name=_name(one))
        if one.verdict in _ELEMENTS:
            text = printable(one.message)
            SubElement(case, _ELEMENTS[one.verdict], type=one.verdict.value, message=text)
        if one.now_ms is not None:
            SubElement(case, "system-out").text = printable(times_text(one))
    for problem in result.problems:
        case = SubElement(suite, "testcase", classname="files", name=printable(problem))
        SubElement(case, "failure", type=GateVerdict.STALE.value, message=printable(problem))
    for kind in ("failure", "error", "skipped"):
        suite.set({"failure": "failures", "error": "errors"}.get(kind, kind), str(len(suite.findall(f".//{kind}"))))
    return tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def markdown(result: GateResult, folder: str) -> str:
    """A table for a pull request or for $GITHUB_STEP_SUMMARY."""
    lines = [f"### Schedules in {_cell(folder)}: {result.verdict.value}", ""]
    lines += ["| schedule | target | device | result | times as fast as the default | when shipped | time |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for one in result.schedules:
        cells = (one.header, one.target, one.device or "–", one.verdict.value, *figures(one))
        lines.append(f"| {' | '.join(map(_cell, cells))} |")
    lines += ["", *(f"- {_cell(one.header)}: {_cell(one.message)}" for one in result.schedules if one.message)]
    lines += [f"- {_cell(text)}" for text in (*result.problems, *result.notes)]
    return "\n".join(lines).rstrip() + "\n"


def figures(one: CheckedSchedule) -> tuple[str, str, str]:
    """How many times as fast as the default, or as what is named, what the header says, and the time; a dash for what
    is not known."""
    now = "–"
    if one.speed_up is not None and one.speed_up.low is not None:
        high = "" if one.speed_up.high is None else f"{one.speed_up.high:.3f}"
        now = f"{one.speed_up.times:.3f} ({one.speed_up.low:.3f} to {high or 'unknown'})"
        if one.speed_up.than != DEFAULT:
            now += f", as {words_for(one.speed_up.than)}"
    return now, "–" if one.promised is None else f"{one.promised:.3f}", times_text(one)


def times_text(one: CheckedSchedule) -> str:
    """'0.655 ms, 0.651 ms when shipped'."""
    if one.now_ms is None:
        return "–"
    shipped = "" if one.shipped_ms is None else f", {one.shipped_ms:.4g} ms when shipped"
    return f"{one.now_ms:.4g} ms{one.clock_mark}{shipped}"


def _name(one: CheckedSchedule) -> str:
    return printable(f"{one.header} on {one.device}" if one.device else one.header)


def _cell(text: str) -> str:
    """On one line, and without what Markdown takes for the end of a cell or for HTML."""
    return printable(text).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
