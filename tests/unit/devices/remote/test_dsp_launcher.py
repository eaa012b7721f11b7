"""The program that starts others on a phone's DSP, with a run_main_on_hexagon that does what a test says."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from halide_autotune.devices.remote.dsp_starter import build_dsp_launcher
from halide_autotune.targets.process.content_cache import ContentCache

pytestmark = pytest.mark.toolchain

# What Qualcomm's program is given, as a line of JSON.
_NOTE = "import json, os, sys\nopen('heard', 'w').write(json.dumps([sys.argv[1:], dict(os.environ)]))\n"
_DONE = '{"event":"done"}\\n{"event":"exit","code":0}\\n'


@dataclass(frozen=True)
class Phone:
    """The folder of a session on a phone."""

    launcher: Path
    folder: Path

    def dsp_does(self, script: str) -> None:
        path = self.folder / "run_main_on_hexagon"
        path.write_text(f"#!{sys.executable}\n{_NOTE}{script}\n")
        path.chmod(0o755)

    def writes_events(self, text: str, code: int = 0) -> None:
        self.dsp_does(f"open(sys.argv[5] + '/' + sys.argv[7], 'w').write('{text}')\nsys.exit({code})")

    def run(self, *arguments: str, **environment: str) -> tuple[int, list[dict[str, Any]]]:
        done = subprocess.run(
            [self.launcher, "batch", *arguments],
            cwd=self.folder,
            env={"PATH": os.defpath, **environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.stderr == ""
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def heard(self) -> tuple[list[str], dict[str, str]]:
        words, environment = json.loads((self.folder / "heard").read_text())
        return words, environment


@pytest.fixture
def phone(tmp_path: Path, cache: ContentCache) -> Phone:
    folder = tmp_path / "session"
    folder.mkdir()
    return Phone(build_dsp_launcher(platform.machine(), cache), folder)


def test_the_command_line_and_what_the_dsp_finds(phone: Phone) -> None:
    phone.dsp_does(
        f"assert os.readlink('dsp_program.so') == 'batch'\nopen('{phone.folder}/dsp_events', 'w').write('{_DONE}')"
    )
    code, events = phone.run("--kernel", "blur")
    assert (code, [event["event"] for event in events]) == (0, ["done", "exit"])
    words, environment = phone.heard()
    ours = ["3", "dsp_program.so", "stack_size=0x400000", "--folder", str(phone.folder), "--events", "dsp_events"]
    assert words == [*ours, "--kernel", "blur"]
    for name in ("ADSP_LIBRARY_PATH", "DSP_LIBRARY_PATH"):
        assert environment[name].split(";")[:2] == [str(phone.folder), "/vendor/lib/rfsa/dsp/testsig"]
    assert environment["LD_LIBRARY_PATH"] == f"{phone.folder}:/vendor/lib64"
    assert sorted(path.name for path in phone.folder.iterdir()) == ["heard", "run_main_on_hexagon"]


def test_what_the_user_has_set_is_kept(phone: Phone) -> None:
    phone.writes_events(_DONE)
    assert phone.run(ADSP_LIBRARY_PATH="/mine;/dsp", LD_LIBRARY_PATH="/lib64")[0] == 0
    _, environment = phone.heard()
    assert environment["ADSP_LIBRARY_PATH"] == f"{phone.folder};/mine;/dsp"
    assert environment["LD_LIBRARY_PATH"] == f"{phone.folder}:/lib64"


def test_the_exit_code_is_the_programs_own(phone: Phone) -> None:
    phone.writes_events('{"event":"error","kind":"halide","message":"no"}\\n{"event":"exit","code":3}\\n')
    code, events = phone.run()
    assert code == 3 and events[0]["kind"] == "halide"
    phone.writes_events(_DONE, code=9)
    assert phone.run()[0] == 0, "run_main_on_hexagon may fail after the program, when it closes"


def test_as_many_arguments_as_there_is_room_for(phone: Phone) -> None:
    phone.writes_events(_DONE)
    assert phone.run()[0] == 0
    used_bytes = sum(len(word) + 1 for word in phone.heard()[0][1:])
    longest = "x" * (2048 - used_bytes - 2)
    assert phone.run(longest)[0] == 0 and sum(len(word) + 1 for word in phone.heard()[0][1:]) == 2047
    for arguments in ([f"{longest}x"], ["x"] * 94):
        (phone.folder / "heard").unlink(missing_ok=True)
        code, (error,) = phone.run(*arguments)
        assert (code, error["kind"]) == (2, "usage") and "arguments" in error["message"]
        assert not (phone.folder / "heard").exists(), "nothing was started"
    assert phone.run(*["x"] * 93)[0] == 0 and len(phone.heard()[0][1:]) < 100


@pytest.mark.parametrize("word", ["a b", "", "tab\t", "stack_size", "core_id=3", "image.unsigned_pd=1x1"])
def test_words_that_would_not_arrive_as_they_are(word: str, phone: Phone) -> None:
    phone.writes_events(_DONE)
    code, (error,) = phone.run("--size", word)
    assert (code, error["kind"]) == (2, "usage") and "cannot be passed to a DSP" in error["message"]


def test_names_that_only_look_like_its_options(phone: Phone) -> None:
    phone.writes_events(_DONE)
    assert phone.run("--kernel", "my_core_id_blur")[0] == 0


@pytest.mark.parametrize(
    ("script", "kind", "words"),
    [
        ("sys.exit(78)", "dsp", "did not start the program (run_main_on_hexagon ended with exit code 78)"),
        ("", "dsp", "ended with exit code 0"),
        ("os.kill(os.getpid(), 11)", "dsp", "was ended by signal 11"),
        ("open('dsp_events', 'w').write('{\"event\":\"start\"}\\n'); sys.exit(45)", "crash", "ended with exit code 45"),
        ("open('dsp_events', 'w').write('{\"event\":\"exit\",\"code\":0}')", "crash", "crashed on the DSP"),
        ("open('dsp_events', 'w').write('{\"event\":\"exit\",\"code\":999}\\n')", "crash", "crashed on the DSP"),
        (f"open('other', 'w').write('{_DONE}'); os.symlink('other', 'dsp_events')", "dsp", "did not start"),
        ("os.mkfifo('dsp_events')", "dsp", "did not start"),
    ],
)
def test_a_dsp_that_does_not_say_how_it_ended(script: str, kind: str, words: str, phone: Phone) -> None:
    phone.dsp_does(script)
    code, events = phone.run()
    assert (code, events[-1]["event"], events[-1]["kind"]) == (1, "error", kind)
    assert words in events[-1]["message"]


def test_without_qualcomms_program(phone: Phone) -> None:
    code, (error,) = phone.run()
    assert code == 1 and "ended with exit code 127" in error["message"]


def test_events_of_an_earlier_run_do_not_count(phone: Phone) -> None:
    (phone.folder / "dsp_events").write_text('{"event":"exit","code":0}\n')
    (phone.folder / "dsp_program.so").write_text("old")
    phone.dsp_does("")
    assert phone.run()[0] == 1


def test_of_many_events_the_last_ones_are_shown(phone: Phone) -> None:
    many = (
        """("".join('{"event":"kernel","number":%d}\\n' % n for n in range(9000)) + '{"event":"exit","code":0}\\n')"""
    )
    phone.dsp_does(f"open('dsp_events', 'w').write{many}")
    code, events = phone.run()
    numbers = [event["number"] for event in events[:-1]]
    assert code == 0 and numbers == list(range(9000 - len(numbers), 9000)) and 1000 < len(numbers) < 9000


def test_a_folder_that_a_dsp_could_not_be_told(phone: Phone, tmp_path: Path) -> None:
    odd = Phone(phone.launcher, tmp_path / "my phone")
    odd.folder.mkdir()
    code, (error,) = odd.run()
    assert code == 1 and "it has a space" in error["message"]


def test_qualcomms_program_does_not_outlive_the_launcher(phone: Phone) -> None:
    phone.dsp_does("open('pid', 'w').write(str(os.getpid()))\nimport time\ntime.sleep(600)")
    with subprocess.Popen([phone.launcher, "batch"], cwd=phone.folder, stdout=subprocess.DEVNULL) as launcher:
        note, until_s = phone.folder / "pid", time.monotonic() + 120
        while not (note.exists() and note.read_text()) and time.monotonic() < until_s:
            time.sleep(0.01)
        hung = psutil.Process(int(note.read_text()))
        launcher.send_signal(signal.SIGKILL)
    hung.wait(timeout=120)
