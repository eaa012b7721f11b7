"""The command `sdk check`: what it finds in a committed folder, and with which exit code."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import halide_autotune.sdk.api.check
from halide_autotune.targets.errors import EmulatorError
from tests.unit.sdk.commands.conftest import Run

HEADER = "blur.arm64.schedule.h"
OTHER = """
@hl.generator(name="other")
class Other(hl.Generator):
    output = hl.OutputBuffer(hl.UInt(16), 2)

    def generate(g):
        x, y = hl.Var("x"), hl.Var("y")
        g.output[x, y] = hl.u16(x + y)
        g.output.set_estimates([(0, 64), (0, 64)])
"""


@pytest.fixture
def generator(examples: Path) -> str:
    return str(examples / "shipping" / "blur.py")


def with_facts(folder: Path, **facts: object) -> None:
    """Change what the folder says of the schedule for arm64."""
    manifest = json.loads((folder / "ship.json").read_text())
    next(one for one in manifest["schedules"] if one["header"] == HEADER)["provenance"].update(facts)
    (folder / "ship.json").write_text(json.dumps(manifest))


Check = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def check(run: Run, shipped: Path, generator: str) -> Check:
    def checked(*arguments: str) -> tuple[int, dict[str, Any]]:
        done = run("check", shipped, "--generator", generator, "--target", "arm64", "--json", *arguments)
        return done.code, next(one for one in json.loads(done.out)["schedules"] if one["header"] == HEADER)

    return checked


@pytest.mark.toolchain
def test_what_was_shipped_is_as_fast_as_it_says(check: Check, tmp_path: Path) -> None:
    """By the simulated clock, which says the same on every machine."""
    code, found = check("--junit", str(tmp_path / "check.xml"), "--markdown", str(tmp_path / "check.md"))
    assert (code, found["verdict"], found["device"], found["clock"]) == (0, "ok", "qemu", "simulated"), found
    assert found["speed_up"]["low"] == found["speed_up"]["high"] > found["promised"] / 1.05
    assert len(ElementTree.parse(tmp_path / "check.xml").findall("testcase")) == 2
    assert f"| {HEADER} | arm64 | qemu | ok |" in (tmp_path / "check.md").read_text()


@pytest.mark.toolchain
def test_one_that_is_slower_than_it_says_fails(check: Check, shipped: Path) -> None:
    with_facts(shipped, default_ms=7.0)
    code, found = check()
    assert (code, found["verdict"]) == (5, "slower")
    assert re.search(r"times as fast as the default .*; the header says 10\.\d+\.", found["message"])
    assert check("--fail-if-slower", "900%")[0] == 0


@pytest.mark.toolchain
def test_one_that_was_edited_is_stale_and_not_timed(check: Check, shipped: Path) -> None:
    (shipped / HEADER).write_text("// by hand\n")
    code, found = check()
    assert (code, found["verdict"], found["device"]) == (4, "stale", "")
    assert found["message"] == f"{HEADER} was changed after it was shipped."


@pytest.mark.toolchain
def test_without_a_device_nothing_is_said_of_times(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*arguments: object) -> None:
        raise EmulatorError("qemu-aarch64 is not installed.")

    monkeypatch.setattr(halide_autotune.sdk.api.check, "find_devices", missing)
    code, found = check()
    assert (code, found["verdict"], found["message"]) == (7, "no device", "qemu-aarch64 is not installed.")


@pytest.mark.toolchain
def test_without_its_generator_only_files_are_checked(run: Run, shipped: Path) -> None:
    done = run("check", shipped)
    assert done.code == 0 and "not timed" in done.out and "Pass it with --generator." in done.err


@pytest.mark.toolchain
def test_a_schedule_is_built_from_its_own_generator(run: Run, shipped: Path, generator: str, tmp_path: Path) -> None:
    """A file has two, and the other one is named."""
    both = tmp_path / "both.py"
    before, main = Path(generator).read_text().split("if __name__")
    both.write_text(f"{before}{OTHER}\n\nif __name__{main}")
    done = run("check", shipped, "--generator", f"{both}:other", "--target", "arm64", "--json")
    assert done.code == 0, done
    assert [one["verdict"] for one in json.loads(done.out)["schedules"]] == ["ok", "not timed"]


@pytest.mark.toolchain
def test_a_report_that_is_there_stays_where_nothing_is_checked(run: Run, shipped: Path, tmp_path: Path) -> None:
    (tmp_path / "check.xml").write_text("of yesterday")
    (shipped / "ship.json").unlink()
    assert run("check", shipped, "--junit", "check.xml").code == 1
    assert (tmp_path / "check.xml").read_text() == "of yesterday"


def test_no_empty_report_stays_where_nothing_is_checked(run: Run, tmp_path: Path) -> None:
    (tmp_path / "check.md").write_text("of yesterday")
    assert run("check", "nowhere", "--junit", "check.xml", "--markdown", "check.md").code == 1
    assert run("check", "nowhere", "--junit", "check.xml", "--markdown", "missing/check.md").code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["check.md"]
    assert (tmp_path / "check.md").read_text() == "of yesterday"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "Missing argument"),
        (("RUN",), 1, "RUN is not a shipped folder: its ship.json cannot be read"),
        (("SHIPPED", "--fail-if-slower", "much"), 2, "'much' is not a share. Write it in per cent, such as 5%."),
        (("SHIPPED", "--device", "nobody"), 2, "nobody"),
        (("SHIPPED", "--junit", "RUN/check.xml"), 1, "RUN/check.xml cannot be written"),
        (("SHIPPED", "--generator", "RUN.cpp"), 1, "RUN.cpp"),
    ],
)
def test_a_wrong_call_is_one_message(
    run: Run, arguments: tuple[str, ...], code: int, words: str, shipped: Path
) -> None:
    done = run("check", *(argument.replace("SHIPPED", str(shipped)) for argument in arguments))
    assert (done.code, done.out) == (code, "") and words in done.err


@pytest.mark.toolchain
def test_a_damaged_figure_is_told_with_its_place(run: Run, shipped: Path) -> None:
    with_facts(shipped, tuned_ms="fast")
    done = run("check", shipped)
    assert done.code == 1 and f"ship.json: {HEADER}: tuned_ms is 'fast', not a number above 0." in done.err
