"""Every failure of a generator gets its reason and a message that shows the fix: against what Halide really prints."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.generator.declared_parameter import DeclaredParameter
from halide_autotune.targets.generator.preload import Preload
from halide_autotune.targets.generator.program import GeneratorProgram, open_generator
from halide_autotune.targets.generator.reference import parse_generator
from halide_autotune.targets.generator.run import (
    AutoschedulerRequest,
    GeneratedFiles,
    GeneratorFailure,
    GeneratorFailureReason,
    GeneratorRequest,
    run_generator,
)
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.limited_process import ProcessLimits, ProcessOutcome
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.schedule.autoschedulers import li2018, mullapudi2016, profile_autoscheduler
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

HERE = Path(__file__).parent / "generators"
BROKEN_CPP = ("missing_estimates", "manual_schedule", "crashes", "hangs", "memory_hog")
LIMITS = ProcessLimits(time_s=240.0, memory_bytes=2**30)

Open = Callable[[str, str], GeneratorProgram]
Search = Callable[..., GeneratedFiles | GeneratorFailure]


@pytest.fixture(scope="module")
def open_program(
    halide: HalideInstall,
    cpp_compiler: HostCppCompiler,
    settings: Settings,
    examples: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Open]:
    """Opens the generators of a file by the file's stem and language; each once. All C++ ones are one executable."""
    opened: dict[Path, GeneratorProgram] = {}
    together = tmp_path_factory.mktemp("sources") / "together.cpp"
    sources = [*(examples / "broken" / f"{name}.cpp" for name in BROKEN_CPP), HERE / "no_estimates.cpp"]
    together.write_text("".join(f'#include "{source}"\n' for source in sources))

    def find(language: str, stem: str) -> Path:
        if language == "cpp":
            return together
        return next(p for p in (HERE / f"{stem}.py", examples / "broken" / f"{stem}.py") if p.exists())

    def get(language: str, stem: str) -> GeneratorProgram:
        file = find(language, stem)
        if file not in opened:
            reference = parse_generator(str(file))
            opened[file] = open_generator(reference, halide, cpp_compiler, settings.environment)
        return opened[file]

    yield get
    for program in opened.values():
        program.close()


@pytest.fixture
def search(open_program: Open, halide: HalideInstall, settings: Settings, tmp_path: Path) -> Search:
    """Runs a generator with an autoscheduler, asking for a schedule."""
    profile = load_profile("host", settings.profile_folder)
    autoschedulers: dict[str, AutoschedulerRequest] = {
        "Adams2019": profile_autoscheduler(halide, profile, 2, {"beam_size": "1"}),
        "Mullapudi2016": mullapudi2016(halide, 2, profile.machine),
        "Li2018": li2018(halide, 2),
    }

    def run(
        language: str,
        stem: str,
        name: str = "",
        limits: ProcessLimits = LIMITS,
        autoscheduler: str | None = "Adams2019",
        stop: StopSignal | None = None,
        **parameters: str,
    ) -> GeneratedFiles | GeneratorFailure:
        emit = ("schedule", "featurization") if autoscheduler == "Adams2019" else ("object",)
        target = profile.halide_target + "-no_runtime"
        chosen = None if autoscheduler is None else autoschedulers[autoscheduler]
        request = GeneratorRequest(name or stem, "f", "f", tmp_path / "out", emit, target, parameters, chosen)
        result = run_generator(open_program(language, stem), request, limits, stop)
        if isinstance(result, GeneratorFailure):
            assert list((tmp_path / "out").iterdir()) == []
        return result

    return run


@pytest.fixture(params=["python", "cpp"])
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def failure(result: GeneratedFiles | GeneratorFailure) -> tuple[GeneratorFailureReason, str]:
    assert isinstance(result, GeneratorFailure)
    return result.reason, result.message


@pytest.mark.parametrize(
    ("autoscheduler", "name", "what"),
    [
        ("Adams2019", "no_output", "output"),
        ("Adams2019", "no_offset", "offset"),
        ("Mullapudi2016", "no_output", "output"),
        ("Li2018", "no_output", "output"),
    ],
)
def test_missing_estimate(search: Search, language: str, autoscheduler: str, name: str, what: str) -> None:
    reason, message = failure(search(language, "no_estimates", name, autoscheduler=autoscheduler))
    assert reason is GeneratorFailureReason.MISSING_ESTIMATE and reason.concerns_every_candidate
    assert message.startswith(f"Generator {name} gives no estimate for {what}, which the autoscheduler needs.")
    assert "set_estimates([(min, extent), …])" in message and "{{min, extent}, …}" in message


def test_only_one_autoscheduler_needs_estimates_of_inputs(search: Search, language: str) -> None:
    reason, message = failure(search(language, "no_estimates", "no_input", autoscheduler="Mullapudi2016"))
    assert not reason.concerns_every_candidate
    assert 'ImageParam "input" in dimension 0 is not specified' in message
    assert isinstance(search(language, "no_estimates", "no_input"), GeneratedFiles)
    assert isinstance(search(language, "no_estimates", "no_input", autoscheduler="Li2018"), GeneratedFiles)


def test_missing_estimates_of_the_example(search: Search, language: str) -> None:
    assert failure(search(language, "missing_estimates"))[0] is GeneratorFailureReason.MISSING_ESTIMATE


@pytest.mark.parametrize(("autoscheduler", "func"), [("Adams2019", "output"), ("Mullapudi2016", "doubled")])
def test_manual_schedule(search: Search, language: str, autoscheduler: str, func: str) -> None:
    reason, message = failure(search(language, "manual_schedule", autoscheduler=autoscheduler))
    assert reason is GeneratorFailureReason.MANUAL_SCHEDULE and reason.concerns_every_candidate
    assert f"schedules {func} by hand" in message and "using_autoscheduler()" in message


def test_a_copy_for_a_func_that_reads_another_through_one_between(search: Search) -> None:
    name = "copy_for_an_indirect_reader"
    reason, message = failure(search("python", name, autoscheduler=None))
    assert not reason.concerns_every_candidate
    assert message.startswith(f'The schedule of generator {name} is refused: Cannot wrap "fine" in "small".')
    assert message.endswith("Name that Func.")
    assert isinstance(search("python", name), GeneratedFiles), "a search does not meet it"


def test_unknown_parameter(search: Search, language: str) -> None:
    reason, message = failure(search(language, "no_estimates", "typed", colour="red"))
    assert reason is GeneratorFailureReason.UNKNOWN_PARAMETER and reason.concerns_every_candidate
    assert "Generator typed has no generator parameter" in message
    assert "-p colour=red" in message and "[" not in message


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("flag", "maybe"), ("count", "three"), ("count", "1.5"), ("ratio", "wide")],
)
def test_parameter_value_of_the_wrong_type(search: Search, language: str, parameter: str, value: str) -> None:
    reason, message = failure(search(language, "no_estimates", "typed", **{parameter: value}))
    assert reason is GeneratorFailureReason.BAD_PARAMETER, message
    assert f"-p {parameter}={value}" in message and value in message


def test_parameter_value_that_is_no_name_of_an_enumeration(search: Search) -> None:
    reason, message = failure(search("cpp", "no_estimates", "typed", kind="three"))
    assert reason is GeneratorFailureReason.BAD_PARAMETER, message
    assert "-p kind=three" in message


def test_what_a_python_generator_raises_is_told_in_one_line(search: Search) -> None:
    reason, message = failure(search("python", "no_estimates", "typed", count="9"))
    assert reason is GeneratorFailureReason.FAILED
    assert message.startswith("Generator typed failed (no_estimates.py, line ") and ", in generate)" in message
    assert message.endswith(": ValueError: typed: count is 9; it must be at most 4.")


def test_memory_hog(search: Search, language: str) -> None:
    reason, message = failure(search(language, "memory_hog", limits=ProcessLimits(60.0, 2**29)))
    assert reason is GeneratorFailureReason.OUT_OF_MEMORY and not reason.concerns_every_candidate
    assert message == "Generator memory_hog ran out of its 0.5 GiB of memory."


def test_crash(search: Search) -> None:
    reason, message = failure(search("cpp", "crashes"))
    assert reason is GeneratorFailureReason.CRASHED
    assert message.startswith("Generator crashes was ended by SIGSEGV.")


def test_hang(search: Search, language: str) -> None:
    reason, message = failure(search(language, "hangs", limits=ProcessLimits(1.0, 2**30)))
    assert reason is GeneratorFailureReason.TIMED_OUT and "did not end within 1 s" in message


@pytest.mark.parametrize("name", ["crashes", "hangs", "memory_hog"])
def test_where_no_search_ran_the_generator_itself_is_to_be_looked_at(search: Search, name: str) -> None:
    limits = ProcessLimits(1.0 if name == "hangs" else 60.0, 2**29)
    assert (
        "No search ran, so look at generate(): " in failure(search("cpp", name, limits=limits, autoscheduler=None))[1]
    )
    assert "look at generate()" not in failure(search("cpp", name, limits=limits))[1]


def test_stop(search: Search, language: str) -> None:
    stop = StopSignal()
    stop.set()
    assert failure(search(language, "hangs", stop=stop))[0] is GeneratorFailureReason.STOPPED


def test_files_of_an_earlier_run_never_count(search: Search, tmp_path: Path) -> None:
    assert isinstance(search("python", "no_estimates", "typed"), GeneratedFiles)
    assert len(list((tmp_path / "out").iterdir())) == 2
    assert failure(search("python", "no_estimates", "no_output"))


@dataclass(frozen=True)
class Prints:
    """A generator that prints and ends as it is told to."""

    log: str
    exit_code: int
    names: tuple[str, ...] = ("blur",)
    sha256: str = ""
    write: Callable[[], None] = lambda: None

    def run(
        self,
        arguments: Sequence[str],
        limits: ProcessLimits,
        stop: StopSignal | None = None,
        preload: Preload | None = None,
    ) -> ProcessOutcome:
        self.write()
        return ProcessOutcome(self.exit_code, False, False, 0.1, 0, limits, self.log)

    def parameters(self, name: str) -> dict[str, DeclaredParameter]:
        return {}

    def close(self) -> None:
        pass


# As Halide 21 prints them: LLVM aborts, Halide throws.
BAD_SIGNATURE = (
    "Warning: Update definition 0 of function cdf has not been scheduled.\n"
    "python: /ws/llvm-project/llvm/lib/IR/Instructions.cpp:759: void llvm::CallInst::init(llvm::FunctionType*, "
    'llvm::Value*): Assertion `(i >= FTy->getNumParams()) && "Calling a function with a bad signature!"\' failed.\n'
)
REFUSED = "Unhandled exception: Error: Generated function does not pass LLVM's verifyFunction.\n\n"
UNDEFINED = "Unhandled exception: Error: Call of widen_right_add with argument 0 undefined.\n\n"


@pytest.mark.parametrize(
    ("log", "exit_code", "reason", "words"),
    [
        (BAD_SIGNATURE, -6, GeneratorFailureReason.CRASHED, "crashes on this schedule of generator blur: `(i >= "),
        ("LLVM ERROR: Cannot select: t5\n", -6, GeneratorFailureReason.CRASHED, "generator blur: Cannot select: t5. "),
        (REFUSED, 1, GeneratorFailureReason.FAILED, "does not pass LLVM's verifyFunction. "),
        (UNDEFINED, 1, GeneratorFailureReason.FAILED, "blur: Call of widen_right_add with argument 0 undefined. "),
    ],
)
def test_faults_of_halides_code_generator_are_told_as_such(
    tmp_path: Path, log: str, exit_code: int, reason: GeneratorFailureReason, words: str
) -> None:
    request = GeneratorRequest("blur", "f", "f", tmp_path, ("object",), "host", {}, None)
    found = failure(run_generator(Prints(log, exit_code), request, LIMITS))
    assert found[0] is reason
    assert words in found[1] and "a bug in Halide" in found[1]
    assert "\n" not in found[1]


def write_call(called: str, output: Path) -> None:
    """Write an object file that calls a function."""
    command = ["cc", "-c", "-x", "assembler", "-", "-o", str(output)]
    subprocess.run(command, input=f'.text\n.globl f\nf: call "{called}"\n', text=True, check=True)


@pytest.mark.toolchain
def test_an_object_that_calls_what_llvm_should_have_compiled_is_a_crash_of_llvms(tmp_path: Path) -> None:
    request = GeneratorRequest("blur", "f", "f", tmp_path, ("object",), "host", {}, None)
    output = tmp_path / "f.o"
    of_llvm = Prints("", 0, write=partial(write_call, "llvm.vp.not.nxv2i32", output))
    reason, message = failure(run_generator(of_llvm, request, LIMITS))
    assert reason is GeneratorFailureReason.CRASHED and not output.exists()
    assert "does not compile llvm.vp.not.nxv2i32 in this schedule of generator blur" in message
    # What a user's own extern stage calls is not LLVM's.
    of_users = Prints("", 0, write=partial(write_call, "llvm_like", output))
    assert isinstance(run_generator(of_users, request, LIMITS), GeneratedFiles)


def test_warnings_are_not_shown_as_the_end_of_the_log(tmp_path: Path) -> None:
    request = GeneratorRequest("blur", "f", "f", tmp_path, ("object",), "host", {}, None)
    _, message = failure(run_generator(Prints("Warning: unscheduled\nthe end\n", -11), request, LIMITS))
    assert message.endswith(":\nthe end") and "unscheduled" not in message


@pytest.mark.parametrize(
    "what",
    [
        "Cannot interleave native vectors of type int64x64",
        "Unsupported HVX type: int64",
        "Unsupported HVX type: uint64",
    ],
)
def test_what_hvx_lacks_is_told(what: str, tmp_path: Path) -> None:
    request = GeneratorRequest("stats", "f", "f", tmp_path, ("object",), "host", {}, None)
    log = f"Unhandled exception: Error: {what}\n\n"
    assert "vectors of 64-bit integers" in failure(run_generator(Prints(log, 1), request, LIMITS))[1]


def test_what_a_generator_throws_ends_as_a_message(tmp_path: Path) -> None:
    request = GeneratorRequest("blur", "f", "f", tmp_path, ("object",), "host", {}, None)
    log = "Unhandled exception: Error: the radius is odd\n\n"
    assert failure(run_generator(Prints(log, 1), request, LIMITS))[1] == "Generator blur failed: the radius is odd."


def test_a_reduction_that_a_search_reorders_is_a_dead_end_of_that_search(tmp_path: Path) -> None:
    request = GeneratorRequest("align", "f", "f", tmp_path, ("object",), "host", {}, None)
    log = (
        "Unhandled exception: Error: In schedule for argmin.update(0), can't reorder RVars r6$y and r6$x because it may"
        " change the meaning of the algorithm.\n\n"
    )
    reason, message = failure(run_generator(Prints(log, 1), request, LIMITS))
    assert reason is GeneratorFailureReason.DEAD_END
    assert "the order of the reduction of argmin.update(0)" in message


RAISED = """Unhandled exception: KeyError: 'high'

At:
  /home/ana/gains.py(8): gain
  /home/ana/nope.py(18): generate
  /venv/lib/python3.11/site-packages/halide/_generator_helpers.py(750): _build_pipeline
  /venv/lib/python3.11/site-packages/targets/generator/python_server.py(200): _run

Traceback (most recent call last):
"""


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (RAISED, "(gains.py, line 8, in gain, called from nope.py, line 18, in generate): KeyError: 'high'."),
        (RAISED.replace("  /home/ana/gains.py(8): gain\n", ""), "(nope.py, line 18, in generate): KeyError: 'high'."),
        (RAISED.replace("/home/ana/", "/venv/lib/python3.11/site-packages/halide/"), "failed: KeyError: 'high'."),
        (RAISED.partition("At:")[0], "failed: KeyError: 'high'."),
    ],
    ids=["in a function", "in generate", "in Halide", "nowhere"],
)
def test_what_a_python_generator_raises_is_told_with_its_place(tmp_path: Path, log: str, words: str) -> None:
    request = GeneratorRequest("nope", "f", "f", tmp_path, ("object",), "host", {}, None)
    message = failure(run_generator(Prints(log, 1), request, LIMITS))[1]
    assert message.startswith("Generator nope failed") and words in message and "\n" not in message
