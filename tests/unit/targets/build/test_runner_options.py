from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.unit.targets.conftest import Runner

BLUR = ("--kernel", "blur_plain")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give --list, --neighbours T or --kernel NAME; see --help."),
        (["--kernel"], "--kernel needs a value."),
        (["--kernel", ""], "--kernel got ''; expected a name."),
        (["--kernel", "nothing"], "There is no kernel 'nothing' in this executable"),
        ([*BLUR, "--events", ""], "--events got ''; expected a file."),
        (["stack_size=0x400000", "stack_size=0x400000", *BLUR], "There is no option 'stack_size=0x400000'."),
        (["--kernal", "blur_plain"], "There is no option '--kernal'."),
        ([*BLUR, "extra"], "There is no option 'extra'."),
        ([*BLUR, "--seed", "-1"], "--seed got '-1'; expected a whole number."),
        ([*BLUR, "--seed", "18446744073709551616"], "--seed got"),
        ([*BLUR, "--threads", "two"], "--threads got 'two'"),
        ([*BLUR, "--threads", " 2"], "--threads got ' 2'"),
        ([*BLUR, "--threads", "1e3"], "--threads got '1e3'"),
        ([*BLUR, "--precision", "nan"], "--precision got 'nan'; expected a number from 0 to 1."),
        ([*BLUR, "--mismatch-share", "1.5"], "--mismatch-share got '1.5'"),
        ([*BLUR, "--max-time-s", "inf"], "--max-time-s got 'inf'"),
        ([*BLUR, "--warm-up-s", "-1"], "--warm-up-s got '-1'"),
        ([*BLUR, "--min-repetitions", "0"], "Expected 1 <= --min-repetitions <= --max-repetitions; got 0"),
        ([*BLUR, "--min-repetitions", "9", "--max-repetitions", "8"], "got 9 and 8"),
        ([*BLUR, "--reference", "a", "--write-reference", "b"], "cannot be used together"),
        ([*BLUR, "--size", "blurred"], "--size got 'blurred'; expected NAME=VALUE."),
        ([*BLUR, "--size", "=3x3"], "--size got '=3x3'"),
        ([*BLUR, "--size", "blurred=3"], "--size blurred got '3'; expected 2 extents"),
        ([*BLUR, "--size", "blurred=3x3x3"], "expected 2 extents"),
        ([*BLUR, "--size", "blurred=3x"], "expected 2 extents"),
        ([*BLUR, "--size", "blurred=3x-3"], "expected 2 extents"),
        ([*BLUR, "--size", "blurred=3x3000000000"], "expected 2 extents"),
        ([*BLUR, "--size", "blur=3x3"], "the kernel 'blur_plain' has no buffer of that name"),
        ([*BLUR, "--scalar", "image=3"], "the kernel 'blur_plain' has no scalar of that name"),
        ([*BLUR, "--input", "blurred=file"], "the kernel 'blur_plain' has no input buffer of that name"),
        (["--kernel", "single_number", "--size", "image=3"], "the buffer has no dimensions"),
        (
            ["--kernel", "scalars", "--scalar", "tiny=128"],
            "--scalar tiny got '128'; expected a value of type int8",
        ),
        (["--kernel", "scalars", "--scalar", "tiny=1x"], "--scalar tiny got '1x'"),
        (["--kernel", "scalars", "--scalar", "small=-1"], "--scalar small got '-1'"),
        (["--kernel", "scalars", "--scalar", "small=65536"], "--scalar small got '65536'"),
        (["--kernel", "scalars", "--scalar", "large=9223372036854775808"], "--scalar large got"),
        (["--kernel", "scalars", "--scalar", "flag=maybe"], "--scalar flag got 'maybe'"),
        (["--kernel", "scalars", "--scalar", "half_way=1e300"], "--scalar half_way got '1e300'"),
        (["--kernel", "scalars", "--scalar", "precise="], "--scalar precise got ''"),
        (["--kernel", "no_estimates"], "The buffer 'image' has no estimates: call set_estimates on it"),
        (["--kernel", "no_scalar_estimate"], "The scalar 'added' has no estimate: call set_estimate on it"),
    ],
    ids=lambda value: " ".join(value)[-40:] if isinstance(value, list) else "",
)
def test_bad_usage_is_one_message(native_runner: Runner, arguments: list[str], message: str) -> None:
    result = native_runner(*arguments)
    assert result.exit_code == 2
    error = result.one("error")
    assert error["kind"] == "usage"
    assert message in error["message"]
    assert result.all("done") == []
    assert result.stderr == ""


def test_strings_are_escaped(native_runner: Runner) -> None:
    assert "no kernel '\"\\\t\x01ü'" in native_runner("--kernel", '"\\\t\x01ü').one("error")["message"]


def test_bytes_that_are_no_text_are_replaced(native_runner: Runner, tmp_path: Path) -> None:
    name = b"a\xffb\xc3(\xed\xa0\x80".decode("utf-8", "surrogateescape")
    message = native_runner("--kernel", name).one("error")["message"]
    assert "'a\ufffdb\ufffd(\ufffd\ufffd\ufffd'" in message


def test_what_is_missing_can_be_given(native_runner: Runner) -> None:
    assert native_runner("--kernel", "no_estimates", "--size", "image=8x8").exit_code == 0
    assert native_runner("--kernel", "no_scalar_estimate", "--scalar", "added=-7").exit_code == 0


def test_the_start_says_what_runs(native_runner: Runner) -> None:
    start = native_runner("--kernel", "blur_tiled", "--seed", "18446744073709551615", "--threads", "2").one("start")
    assert start["kernel"] == "blur_tiled"
    assert start["seed"] == 2**64 - 1
    assert start["threads"] == 2


def events_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_events_and_files_in_a_folder(native_runner: Runner, tmp_path: Path) -> None:
    """As on a DSP, which has no standard output, no working folder, and hands on an option of its launcher's."""
    there = ("stack_size=0x400000", "--folder", tmp_path, "--events", "said")
    result = native_runner(*there, *BLUR, "--write-reference", "expected")
    assert (result.exit_code, result.events, result.stderr) == (0, [], "")
    events = events_in(tmp_path / "said")
    assert [event["event"] for event in events[-3:]] == ["reference", "done", "exit"] and events[-1]["code"] == 0
    assert events[-3]["path"] == str(tmp_path / "expected") and (tmp_path / "expected").is_file()
    assert native_runner(*there, *BLUR, "--reference", tmp_path / "expected").exit_code == 0
    assert [event["accepted"] for event in events_in(tmp_path / "said") if event["event"] == "compared"] == [True]
    result = native_runner(*there, *BLUR, "--input", "image=nothing")
    error, ended = events_in(tmp_path / "said")[-2:]
    assert f"{tmp_path}/nothing cannot be read" in error["message"] and ended == {"event": "exit", "code": 5}
    assert result.exit_code == 5


def test_events_of_wrong_usage_and_of_a_list(native_runner: Runner, tmp_path: Path) -> None:
    there = ("--folder", tmp_path, "--events", "said")
    assert native_runner(*there, "--kernel", "nothing").exit_code == 2
    assert events_in(tmp_path / "said")[-1] == {"event": "exit", "code": 2}
    assert native_runner(*there, "--list").exit_code == 0
    assert "blur_plain" in [event.get("name") for event in events_in(tmp_path / "said")]


def test_events_that_cannot_be_written(native_runner: Runner, tmp_path: Path) -> None:
    result = native_runner("--folder", tmp_path / "none", "--events", "said", *BLUR)
    assert result.exit_code == 5 and "cannot be written" in result.one("error")["message"]
    if Path("/dev/full").exists():
        assert native_runner("--events", "/dev/full", *BLUR).exit_code == 5


def people(runner: Runner, *arguments: str) -> str:
    done = subprocess.run([str(runner.executable.path), *arguments], capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_person_gets_help(native_runner: Runner) -> None:
    said = people(native_runner, "--help")
    assert "--benchmarks=all" in said and said.rstrip().endswith(native_runner.executable.kernels[-1])
    assert people(native_runner, "--describe") == people(native_runner, "--list")


def test_a_person_is_told_what_a_call_takes(native_runner: Runner) -> None:
    """As with Halide's RunGen; the events are there, too."""
    said = people(native_runner, "--benchmarks=all", "--kernel", "blur_plain", "--max-repetitions", "5")
    (line,) = [line for line in said.splitlines() if not line.startswith("{")]
    assert re.fullmatch(r"blur_plain: [\d.e-]+ ms a call \(median of [1-5]\), [\d.e-]+ ms at best", line)
    assert '"event":"timed"' in said
