"""Python generators behind the warm server: what a run sees, how it ends, what stays behind."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.store.featurization import read_featurization
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator import python_program as python_generator_program
from halide_autotune.targets.generator.declared_parameter import DeclaredParameter, ParameterKind
from halide_autotune.targets.generator.python_program import PythonGeneratorProgram
from halide_autotune.targets.generator.run import (
    GeneratedFiles,
    GeneratorFailure,
    GeneratorFailureReason,
    GeneratorRequest,
    run_generator,
)
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.limited_process import LOG_TAIL_BYTES, ProcessLimits, ProcessOutcome
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.schedule.autoschedulers import profile_autoscheduler
from tests.process_state import PATIENCE_S, await_condition, await_file, has_ended, under_a_time_limit

SEEDED = Path(__file__).parent / "generators" / "seeded.py"
LIMITS = ProcessLimits(time_s=240.0, memory_bytes=2 * 2**30)
# Forks for ever when it is asked to, and tells who it is.
FORKING = """
import os, time
import halide as hl

@hl.generator(name="forking")
class Forking(hl.Generator):
    where = hl.GeneratorParam("nowhere")
    output = hl.OutputBuffer(hl.UInt(8), 1)

    def generate(self):
        child = os.fork()
        if child == 0:
            time.sleep(1000)
        with open(self.where, "w") as file:
            file.write(f"{os.getpid()} {child}\\n")
        time.sleep(1000)
"""
# Runs a generator, and tells which process groups are watched over.
CLIENT = """
import os, sys
from pathlib import Path
from halide_autotune.targets.process import child_guard
watch_over = child_guard.watch_over

def told(group):
    watch_over(group)
    with open(sys.argv[2], "a") as file:
        file.write(f"{group}\\n")

child_guard.watch_over = told
from halide_autotune.targets.generator.python_program import PythonGeneratorProgram
from halide_autotune.targets.process.limited_process import ProcessLimits
program = PythonGeneratorProgram(Path(sys.argv[1]), os.environ)
program.run(sys.argv[3:], ProcessLimits(600.0, 2 * 2**30))
"""

Compile = Callable[..., GeneratedFiles | GeneratorFailure]
Open = Callable[[str], PythonGeneratorProgram]


@pytest.fixture(scope="module")
def seeded(settings: Settings) -> Iterator[PythonGeneratorProgram]:
    program = PythonGeneratorProgram(SEEDED, settings.environment)
    yield program
    program.close()


@pytest.fixture
def open_text(settings: Settings, tmp_path: Path) -> Iterator[Open]:
    """Opens a file with the given text, in a folder with an odd name."""
    opened: list[PythonGeneratorProgram] = []

    def get(text: str) -> PythonGeneratorProgram:
        file = tmp_path / "a folder, 'quoted'" / "generator.py"
        file.parent.mkdir()
        file.write_text(text)
        opened.append(PythonGeneratorProgram(file, settings.environment))
        return opened[-1]

    yield get
    for program in opened:
        program.close()


@pytest.fixture
def compile_blur(seeded: PythonGeneratorProgram, halide: HalideInstall, settings: Settings, tmp_path: Path) -> Compile:
    profile = load_profile("host", settings.profile_folder)

    def run(folder: str, search: dict[str, str] | None = None, **parameters: str) -> GeneratedFiles | GeneratorFailure:
        emit: tuple[str, ...] = ("object",)
        autoscheduler = None
        if search is not None:
            emit = ("schedule", "featurization")
            autoscheduler = profile_autoscheduler(halide, profile, 2, search)
        target = profile.halide_target + "-no_runtime"
        request = GeneratorRequest("seeded_blur", "f", "f", tmp_path / folder, emit, target, parameters, autoscheduler)
        return run_generator(seeded, request, LIMITS)

    return run


def files_of(result: GeneratedFiles | GeneratorFailure) -> GeneratedFiles:
    assert isinstance(result, GeneratedFiles), result
    return result


def schedule_hash(result: GeneratedFiles | GeneratorFailure) -> str:
    return read_featurization(files_of(result).files["featurization"]).schedule_sha256


def is_written(path: Path) -> bool:
    return path.exists() and path.read_text().endswith("\n")


def test_it_names_what_the_file_registers(seeded: PythonGeneratorProgram) -> None:
    assert seeded.names == ("another", "seeded_blur")


def test_a_boolean_parameter_is_false_when_it_says_false(compile_blur: Compile) -> None:
    objects = {
        value: files_of(compile_blur(value, invert=value)).files["object"].read_bytes()
        for value in ("true", "false", "True", "False", "1", "0")
    }
    assert objects["true"] == objects["True"] == objects["1"] != objects["false"]
    assert objects["false"] == objects["False"] == objects["0"]


def test_autoscheduler_parameters_reach_the_search(compile_blur: Compile) -> None:
    def search(folder: str, **parameters: str) -> str:
        return schedule_hash(compile_blur(folder, {"beam_size": "1", "random_dropout": "1", **parameters}))

    seeds = {seed: search(seed, random_dropout_seed=seed) for seed in ("1", "2", "3", "4")}
    assert len(set(seeds.values())) > 1
    assert search("again", random_dropout_seed="1") == seeds["1"]


def test_runs_at_the_same_time_do_not_mix(compile_blur: Compile) -> None:
    def search(seed: int) -> tuple[int, str]:
        parameters = {"beam_size": "1", "random_dropout": "1", "random_dropout_seed": str(seed % 4)}
        return seed % 4, schedule_hash(compile_blur(str(seed), parameters))

    with ThreadPoolExecutor(6) as threads:
        found = set(threads.map(search, range(16)))
    assert len(found) == 4


def test_of_a_long_talk_the_end_is_kept(seeded: PythonGeneratorProgram, tmp_path: Path) -> None:
    arguments = ["-g", "seeded_blur", "-o", str(tmp_path), "-e", "object", "target=host-no_runtime"]
    outcome = seeded.run([*arguments, "talk_bytes=30000000"], LIMITS)
    assert outcome.succeeded
    assert outcome.log.rstrip().endswith("~ all said") and len(outcome.log) == LOG_TAIL_BYTES


@pytest.mark.parametrize("how", ["time limit", "stop", "close", "server killed"])
def test_nothing_stays_behind(open_text: Open, tmp_path: Path, how: str) -> None:
    program = open_text(FORKING)
    note = tmp_path / "ids"
    stop = StopSignal()
    arguments = ["-g", "forking", "-o", str(tmp_path), "-e", "object", "target=host", f"where={note}"]

    def run(limit_s: float) -> ProcessOutcome:
        return program.run(arguments, ProcessLimits(limit_s, 2 * 2**30), stop)

    with ThreadPoolExecutor(1) as thread:
        if how == "time limit":
            running = thread.submit(under_a_time_limit, run, lambda: is_written(note))
        else:
            running = thread.submit(run, 600.0)
        ids = [int(word) for word in await_file(note).split()]
        if how == "stop":
            stop.set()
        elif how == "close":
            program._socket.shutdown(socket.SHUT_RDWR)
        elif how == "server killed":
            os.kill(program._process.pid, signal.SIGKILL)
        outcome = running.result()
    assert not outcome.succeeded
    assert (outcome.timed_out, outcome.stopped) == (how == "time limit", how == "stop")
    assert len(ids) == 2 and all(has_ended(pid) for pid in ids)


def test_a_killed_client_leaves_nothing(settings: Settings, tmp_path: Path) -> None:
    file, note, watched = tmp_path / "forking.py", tmp_path / "ids", tmp_path / "watched"
    file.write_text(FORKING)
    arguments = ["-g", "forking", "-o", str(tmp_path), "-e", "object", "target=host", f"where={note}"]
    command = [sys.executable, "-c", CLIENT, str(file), str(watched), *arguments]
    client = subprocess.Popen(command, env=settings.environment, stderr=subprocess.DEVNULL)
    try:
        ids = [int(word) for word in await_file(note).split()]
        await_condition(lambda: str(ids[0]) in watched.read_text().split(), "the client knows of the run")
        # Also where the server is killed before it can end its runs.
        os.kill(int(watched.read_text().split()[0]), signal.SIGSTOP)
    finally:
        client.kill()
        client.wait()
    assert len(ids) == 2 and all(has_ended(pid) for pid in ids)


def test_a_run_ends_with_its_server(open_text: Open, tmp_path: Path) -> None:
    """Whoever knows of it: the client may not yet."""
    program = open_text(FORKING)
    note = tmp_path / "ids"
    arguments = ["-g", "forking", "-o", str(tmp_path), "-e", "object", "target=host", f"where={note}"]
    answers, server_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with answers, server_end, open(tmp_path / "log", "wb") as log:
        program._request(arguments, ProcessLimits(600.0, 2 * 2**30), {}, [server_end.fileno(), log.fileno()])
        run, child = map(int, await_file(note).split())
        os.kill(program._process.pid, signal.SIGKILL)
        assert has_ended(run)
        os.kill(child, signal.SIGKILL)


def test_a_stop_at_the_very_start_leaves_nothing(settings: Settings, examples: Path, tmp_path: Path) -> None:
    program = PythonGeneratorProgram(examples / "broken" / "hangs.py", settings.environment)
    stop = StopSignal()
    stop.set()
    arguments = ["-g", "hangs", "-o", str(tmp_path), "-e", "object", "target=host"]
    try:
        with ThreadPoolExecutor(8) as threads:
            outcomes = list(threads.map(lambda _: program.run(arguments, LIMITS, stop), range(40)))
        assert all(outcome.stopped for outcome in outcomes)
        assert Path(f"/proc/{program._process.pid}/task/{program._process.pid}/children").read_text() == ""
    finally:
        program.close()


def test_closing_at_the_very_start_leaves_nothing(settings: Settings, examples: Path, tmp_path: Path) -> None:
    arguments = ["-g", "hangs", "-o", str(tmp_path / "marks-this-test"), "-e", "object", "target=host"]
    for _ in range(5):
        program = PythonGeneratorProgram(examples / "broken" / "hangs.py", settings.environment)
        with ThreadPoolExecutor(4) as threads:
            running = [threads.submit(program.run, arguments, LIMITS) for _ in range(4)]
            pids = _children_of(program._process.pid)
            program._socket.shutdown(socket.SHUT_RDWR)
            assert not any(outcome.result().succeeded for outcome in running if not outcome.exception())
        program._process.wait(PATIENCE_S)
        assert all(has_ended(pid) for pid in pids)
        program._socket.close()


def _children_of(pid: int) -> list[int]:
    found: list[int] = []
    deadline_s = time.monotonic() + PATIENCE_S
    while not found and time.monotonic() < deadline_s:
        found = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return found


def test_a_server_that_was_killed_is_told(settings: Settings) -> None:
    program = PythonGeneratorProgram(SEEDED, settings.environment)
    os.kill(program._process.pid, signal.SIGKILL)
    program._process.wait()
    with pytest.raises(GeneratorError, match="seeded.py has died") as caught:
        program.run(["-g", "another"], LIMITS)
    assert caught.value.next_step
    program.close()


def test_closing_ends_the_server(settings: Settings) -> None:
    before = threading.active_count()
    program = PythonGeneratorProgram(SEEDED, settings.environment)
    pid = program._process.pid
    program.close()
    assert has_ended(pid)
    assert threading.active_count() <= before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("this is no Python", "cannot be imported: SyntaxError: invalid syntax"),
        ("def f(:\n", "cannot be imported: SyntaxError"),
        ("import no_such_module_at_all", "cannot be imported: ModuleNotFoundError: No module named"),
        ("1 / 0", "cannot be imported: ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "cannot be imported: SystemExit: 3"),
        ("import os; os._exit(5)", "cannot be imported: the interpreter died"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "cannot be imported: the interpreter died"),
        ("x = 1", "registers no generator"),
        ("", "registers no generator"),
        ("\0", "cannot be imported: "),
    ],
)
def test_a_file_that_cannot_be_imported_is_refused(open_text: Open, text: str, words: str) -> None:
    with pytest.raises(GeneratorError) as caught:
        open_text(text)
    assert words in str(caught.value) and "generator.py" in str(caught.value)
    assert "python_server" not in str(caught.value)
    assert caught.value.next_step


def test_the_broken_example_is_refused(settings: Settings, examples: Path) -> None:
    with pytest.raises(GeneratorError, match="SyntaxError: .*was never closed"):
        PythonGeneratorProgram(examples / "broken" / "syntax_error.py", settings.environment)


def test_a_file_that_hangs_while_it_is_imported_is_given_up(open_text: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_generator_program, "_START_TIME_S", 2.0)
    with pytest.raises(GeneratorError, match="did not end within 2 s"):
        open_text("import time\ntime.sleep(1000)")


def test_what_a_file_prints_while_it_is_imported_disturbs_nothing(open_text: Open) -> None:
    talk = "import os, sys\nprint('x' * 10**6)\nos.write(2, b'y' * 10**6)\nassert sys.stdin.read() == ''\n"
    assert open_text(talk + SEEDED.read_text()).names == ("another", "seeded_blur")


def test_a_file_imports_what_lies_beside_it(open_text: Open, tmp_path: Path) -> None:
    beside = tmp_path / "a folder, 'quoted'"
    program = open_text(
        "import sys, pathlib\n"
        "pathlib.Path(__file__).with_name('lying_beside.py').write_text('value = 1')\n"
        "import lying_beside\n" + SEEDED.read_text()
    )
    assert program.names and (beside / "lying_beside.py").exists()


def test_files_named_like_the_sdks_own_packages_disturb_nothing(
    open_text: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "working directory"
    folder.mkdir()
    for name in ("targets", "devices", "weights", "autotune_loop", "sdk"):
        (folder / f"{name}.py").write_text(f"raise SystemExit('this {name}.py is the user's')")
    (folder / "stages.py").write_text("value = 1")
    monkeypatch.chdir(folder)
    assert open_text("import stages\n" + SEEDED.read_text()).names == ("another", "seeded_blur")


def test_a_memory_limit_counts_for_each_run(seeded: PythonGeneratorProgram, settings: Settings, examples: Path) -> None:
    program = PythonGeneratorProgram(examples / "broken" / "memory_hog.py", settings.environment)
    try:
        outcome = program.run(
            ["-g", "memory_hog", "-o", "/tmp", "-e", "object", "target=host"], ProcessLimits(60, 2**29)
        )
        assert outcome.out_of_memory and outcome.describe() == "ran out of its 0.5 GiB of memory"
    finally:
        program.close()


def test_a_failed_run_says_so(compile_blur: Compile) -> None:
    result = compile_blur("out", invert="perhaps")
    assert isinstance(result, GeneratorFailure) and result.reason is GeneratorFailureReason.BAD_PARAMETER


def test_the_parameters_that_a_generator_declares(settings: Settings, tmp_path: Path) -> None:
    source = tmp_path / "declares.py"
    source.write_text(
        "import halide as hl\n"
        "class Base(hl.Generator):\n"
        "    radius = hl.GeneratorParam(3)\n"
        "    gain = hl.GeneratorParam(1.5)\n"
        "@hl.alias(wide={'radius': 9})\n"
        "@hl.generator(name='declares')\n"
        "class Declares(Base):\n"
        "    fuse = hl.GeneratorParam(True)\n"
        "    label = hl.GeneratorParam('x')\n"
        "    type = hl.GeneratorParam(hl.UInt(16))\n"
        "    output = hl.OutputBuffer(hl.UInt(8), 1)\n"
    )
    with contextlib.closing(PythonGeneratorProgram(source, settings.environment)) as program:
        declared = {
            "radius": DeclaredParameter(ParameterKind.INTEGER, "3"),
            "gain": DeclaredParameter(ParameterKind.NUMBER, "1.5"),
            "fuse": DeclaredParameter(ParameterKind.BOOLEAN, "true", ("true", "false")),
            "label": DeclaredParameter(ParameterKind.TEXT, "x"),
            "type": DeclaredParameter(ParameterKind.TEXT, "uint16"),
        }
        assert program.parameters("declares") == declared
        assert program.parameters("wide")["radius"] == DeclaredParameter(ParameterKind.INTEGER, "9")


RAISES = """
import halide as hl

GAINS = {"low": 1}


def gain(name):
    return GAINS[name]


@hl.generator(name="raises")
class Raises(hl.Generator):
    output = hl.OutputBuffer(hl.UInt(8), 1)

    def generate(self):
        x = hl.Var("x")
        self.output[x] = hl.u8(gain("high"))
"""


def test_an_exception_is_told_with_the_line_that_raised_it(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "raises.py"
    file.write_text(RAISES)
    request = GeneratorRequest("raises", "raises", "raises", tmp_path / "out", ("object",), "host-no_runtime")
    with contextlib.closing(PythonGeneratorProgram(file, settings.environment)) as program:
        result = run_generator(program, request, LIMITS)
    assert isinstance(result, GeneratorFailure)
    place = "raises.py, line 8, in gain, called from raises.py, line 17, in generate"
    assert result.message == f"Generator raises failed ({place}): KeyError: 'high'."
