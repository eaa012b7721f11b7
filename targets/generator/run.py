"""Run a generator once: the request, the files, and what each failure means."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from halide_autotune.targets.errors import GeneratorError, os_error_as
from halide_autotune.targets.generator.preload import Preload
from halide_autotune.targets.generator.program import GeneratorProgram
from halide_autotune.targets.process.disk_space import full_disk
from halide_autotune.targets.process.limited_process import ProcessLimits, ProcessOutcome
from halide_autotune.targets.process.scratch_folder import scratch_folder
from halide_autotune.targets.process.stop_signal import StopSignal

# The names of GenGen's option -e, and the suffixes of the files.
EMITTED_SUFFIXES = {
    "object": ".o",
    "static_library": ".a",
    "c_header": ".h",
    "schedule": ".schedule.h",
    "featurization": ".featurization",
    "stmt": ".stmt",
    "assembly": ".s",
}
# The parameter of an autoscheduler that applies a schedule which is data.
SCHEDULE_PATH = "schedule_path"
_LOG_LINES_SHOWN = 6
_PLAIN_PATH = re.compile(r"[^\s=,]*")
_PLAIN_PLACE = Path("/tmp")
_TMPDIR_STEP = "Set TMPDIR to a folder whose path has no white space, '=' or ','."


class GeneratorFailureReason(Enum):
    """Why a run of a generator gave no files."""

    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    CRASHED = "crashed"
    MISSING_ESTIMATE = "missing estimate"
    MANUAL_SCHEDULE = "manual schedule"
    UNKNOWN_PARAMETER = "unknown parameter"
    BAD_PARAMETER = "bad parameter value"
    EXTERN_STAGE = "extern stage"
    DEAD_END = "dead end"
    INVALID_SCHEDULE = "invalid schedule"
    UNRUNNABLE = "unrunnable"
    FAILED = "failed"
    STOPPED = "stopped"

    @property
    def concerns_every_candidate(self) -> bool:
        """Whether every schedule of the generator fails like this."""
        return self in _HOPELESS


_HOPELESS = {
    GeneratorFailureReason.MISSING_ESTIMATE,
    GeneratorFailureReason.MANUAL_SCHEDULE,
    GeneratorFailureReason.UNKNOWN_PARAMETER,
    GeneratorFailureReason.BAD_PARAMETER,
}


@dataclass(frozen=True)
class AutoschedulerRequest:
    """An autoscheduler, its plug-ins, and its parameters (without the prefix `autoscheduler.`)."""

    name: str
    plugins: tuple[Path, ...]
    parameters: Mapping[str, str] = field(default_factory=dict)

    def within(self, name: str, plugin: Path, parameters: Mapping[str, str]) -> AutoschedulerRequest:
        """Return the autoscheduler of that name, which runs this one; both are given all parameters."""
        return AutoschedulerRequest(name, (*self.plugins, plugin), {**self.parameters, **parameters})


@dataclass(frozen=True)
class GeneratorRequest:
    """What a run emits.

    Attributes:
        generator_name: the registered name.
        function_name: the symbol of the compiled function.
        base_name: the name of the files without their suffix.
        emit: keys of `EMITTED_SUFFIXES`.
        halide_target: Halide's target string.
        parameters: the user's generator parameters.
        autoscheduler: None keeps the generator's own schedule.
    """

    generator_name: str
    function_name: str
    base_name: str
    output_folder: Path
    emit: tuple[str, ...]
    halide_target: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    autoscheduler: AutoschedulerRequest | None = None

    def arguments(self) -> list[str]:
        """Return the arguments of `generate_filter_main`."""
        arguments = ["-g", self.generator_name, "-f", self.function_name, "-n", self.base_name]
        arguments += ["-o", str(self.output_folder), "-e", ",".join(self.emit)]
        if self.autoscheduler is not None and self.autoscheduler.plugins:
            arguments += ["-p", ",".join(map(str, self.autoscheduler.plugins))]
        arguments.append(f"target={self.halide_target}")
        arguments += [f"{key}={value}" for key, value in self.parameters.items()]
        if self.autoscheduler is not None:
            arguments.append(f"autoscheduler={self.autoscheduler.name}")
            arguments += [f"autoscheduler.{k}={v}" for k, v in self.autoscheduler.parameters.items()]
        return arguments


@dataclass(frozen=True)
class GeneratedFiles:
    """The result of a run that wrote every file it was asked for, by emit key."""

    files: Mapping[str, Path]
    duration_s: float


@dataclass(frozen=True)
class GeneratorFailure:
    """The result of a run that did not.

    Attributes:
        message: what went wrong and what to do, for the user.
        log: the end of what the generator printed.
    """

    reason: GeneratorFailureReason
    message: str
    log: str
    duration_s: float


def run_generator(
    program: GeneratorProgram,
    request: GeneratorRequest,
    limits: ProcessLimits,
    stop: StopSignal | None = None,
    preload: Preload | None = None,
) -> GeneratedFiles | GeneratorFailure:
    """Run the generator once; every failure is a typed result.

    Args:
        preload: as for `GeneratorProgram.run`.
    """
    request.output_folder.mkdir(parents=True, exist_ok=True)
    files = {key: request.output_folder / (request.base_name + EMITTED_SUFFIXES[key]) for key in request.emit}
    for path in files.values():
        path.unlink(missing_ok=True)
    outcome = program.run(request.arguments(), limits, stop, preload)
    missing = [key for key, path in files.items() if not path.is_file() or path.stat().st_size == 0]
    is_written = outcome.succeeded and not missing
    fault = _uncompiled(files, request) if is_written else _explain(outcome, request)
    if fault is None:
        return GeneratedFiles(files, outcome.duration_s)
    for path in files.values():
        path.unlink(missing_ok=True)
    reason, message = fault
    if not outcome.stopped and (full := full_disk([request.output_folder, Path(tempfile.gettempdir())])):
        reason = GeneratorFailureReason.FAILED
        message = f"Generator {request.generator_name} {outcome.describe()}. {full}"
    return GeneratorFailure(reason, message, outcome.log, outcome.duration_s)


def _uncompiled(files: Mapping[str, Path], request: GeneratorRequest) -> tuple[GeneratorFailureReason, str] | None:
    """What is wrong with an object that calls an instruction of LLVM's own as a function, which no linker finds.

    Of the names in an object only such a symbol begins like this: LLVM compiles all others away.
    """
    found = _INTRINSIC.search(files["object"].read_bytes()) if "object" in files else None
    if found is None:
        return None
    return GeneratorFailureReason.CRASHED, _LEFT.format(name=request.generator_name, what=found["name"].decode())


@contextlib.contextmanager
def plain_folder(folder: Path) -> Iterator[Path]:
    """Give the folder by a path that Halide's command line takes: a link if its path has white space, '=' or ','.

    Adams2019 aborts on what follows white space in a parameter; the generator's main splits at '=', and lists at ','.

    Raises:
        GeneratorError: a link is needed, TMPDIR has such a path, too, and nothing can be made in /tmp.
    """
    if _PLAIN_PATH.fullmatch(str(folder)):
        yield folder
        return
    is_plain = _PLAIN_PATH.fullmatch(tempfile.gettempdir())
    what = f"A generator cannot be given the path {folder}, and a link to it cannot be made in {_PLAIN_PLACE}"
    with contextlib.ExitStack() as held:
        with contextlib.nullcontext() if is_plain else os_error_as(GeneratorError, what, next_step=_TMPDIR_STEP):
            links = held.enter_context(scratch_folder("folder", None if is_plain else _PLAIN_PLACE))
        link = links / "folder"
        link.symlink_to(folder.absolute(), target_is_directory=True)
        yield link


def _explain(outcome: ProcessOutcome, request: GeneratorRequest) -> tuple[GeneratorFailureReason, str]:
    generator = f"Generator {request.generator_name}"
    if outcome.stopped:
        return GeneratorFailureReason.STOPPED, f"{generator} was stopped."
    if outcome.timed_out:
        return GeneratorFailureReason.TIMED_OUT, f"{generator} {outcome.describe()}.{_advice(request, _ENDLESS)}"
    given = " ".join(f"-p {key}={value}" for key, value in request.parameters.items()) or "-p key=value"
    for pattern, reason, template in _EXPLANATIONS:
        found = re.search(pattern, outcome.log)
        if found:
            what = _quoted(found) or "one of its Funcs"
            return reason, template.format(name=request.generator_name, given=given, what=what)
    if outcome.out_of_memory:
        return GeneratorFailureReason.OUT_OF_MEMORY, f"{generator} {outcome.describe()}.{_advice(request, _LARGE)}"
    if outcome.exit_code < 0:
        message = f"{generator} {outcome.describe()}.{_advice(request, _CRASH)}{_end_of(outcome.log)}"
        return GeneratorFailureReason.CRASHED, message
    raised = _RAISED.search(outcome.log)
    if raised:
        words = raised.group("what").strip()
        end = "" if words.endswith((".", "!", "?")) else "."
        return _refusal(request), f"{generator} failed{_place_of(outcome.log)}: {words}{end}"
    what = outcome.describe() if outcome.exit_code else "succeeded without writing every file"
    return GeneratorFailureReason.FAILED, f"{generator} {what}.{_end_of(outcome.log)}"


def _advice(request: GeneratorRequest, suspect: str) -> str:
    """What to look at where no search ran, which could be to blame."""
    if request.autoscheduler is not None and request.autoscheduler.plugins:
        return ""
    return f" No search ran, so look at generate(): {suspect}."


def _refusal(request: GeneratorRequest) -> GeneratorFailureReason:
    """What it is that Halide refuses: a schedule that was given as data, or what the generator itself does."""
    given = request.autoscheduler is not None and SCHEDULE_PATH in request.autoscheduler.parameters
    return GeneratorFailureReason.INVALID_SCHEDULE if given else GeneratorFailureReason.FAILED


def _quoted(found: re.Match[str]) -> str:
    groups = found.groupdict()
    return " ".join((groups["what"] or groups.get("other") or "").split())


def _end_of(log: str) -> str:
    lines = [line for line in log.splitlines() if line.strip() and not line.startswith("Warning: ")]
    return " Its last lines:\n" + "\n".join(lines[-_LOG_LINES_SHOWN:]) if lines else " It printed nothing."


# Halide prints what a generator throws or raises up to an empty line; the frames of a Python generator follow.
_RAISED = re.compile(r"Unhandled exception: (?:Error: )?(?P<what>.+?)(?:\n\s*\n|\Z)", re.DOTALL)

# The frames of a Python generator, the innermost first; then come those of Halide's main.
_FRAMES = re.compile(r"\n\s*\nAt:\n(?P<frames>(?:  [^\n]+\(\d+\): [^\n]+(?:\n|\Z))+)")
_FRAME = re.compile(r"  (?P<file>[^\n]+)\((?P<line>\d+)\): (?P<function>[^\n]+)")
_NOT_THE_USERS = ("/site-packages/halide/", "/targets/generator/python_server.py", "<frozen ")


def _place_of(log: str) -> str:
    """Where a Python generator raised its exception: in which line, and from which line of `generate`."""
    found = _FRAMES.search(log)
    if found is None:
        return ""
    every = _FRAME.finditer(found.group("frames"))
    frames = [each for each in every if not any(part in each["file"] for part in _NOT_THE_USERS)]
    if not frames:
        return ""
    places = [frames[0], *(each for each in frames[1:] if each["function"] == "generate")][:2]
    words = [f"{Path(each['file']).name}, line {each['line']}, in {each['function']}" for each in places]
    return f" ({', called from '.join(words)})"


_UNROLLED = "a schedule that unrolls by a large extent"
_ENDLESS = f"a loop that does not end, or {_UNROLLED}"
_LARGE = f"what it allocates, or {_UNROLLED}"
_CRASH = "a pointer or an index that is wrong; a print before each step shows where"
_IF_ALL_FAIL = "Other schedules may compile; if none does, "
_HALIDE_IS_WRONG = _IF_ALL_FAIL + "Halide cannot compile this pipeline for the target: a bug in Halide."

# A symbol's name as an object file has it, such as llvm.vp.not.nxv2i32 on RISC-V.
_INTRINSIC = re.compile(rb"\0(?P<name>llvm\.[\w.]+)\0")
_LEFT = (
    "LLVM, Halide's code generator, does not compile {what} in this schedule of generator {name}, and calls it as a "
    "function, which there is not. " + _HALIDE_IS_WRONG
)


class _Explanation(NamedTuple):
    """What Halide 21 prints, the reason, and the message with the fix."""

    pattern: str
    reason: GeneratorFailureReason
    message: str


_EXPLANATIONS = (
    _Explanation(
        r"(?P<what>Unhandled HVX \w+ [^\n]*float[^\n]*)",
        GeneratorFailureReason.FAILED,
        "This schedule of generator {name} has floating-point vectors, which this version of HVX lacks. "
        "Compute with integers (fixed point), or use a target for HVX v68.",
    ),
    _Explanation(
        r"Unhandled exception: (?P<what>Error): *\n\s*\n",
        GeneratorFailureReason.FAILED,
        "Halide's code generator fails on this schedule of generator {name} without a message. "
        + _IF_ALL_FAIL
        + "change the sizes (on Hexagon, use rows of several times 128 bytes).",
    ),
    _Explanation(
        r"(?P<what>(?:Cannot interleave native vectors of|Unsupported HVX) type:? u?int64(?:x\d+)?)",
        GeneratorFailureReason.FAILED,
        "This schedule of generator {name} has vectors of 64-bit integers, which Halide's code generator for "
        "HVX lacks: {what}. "
        + _IF_ALL_FAIL
        + "use 32 bits, and divide (or take remainders of) 32-bit values only by powers of two.",
    ),
    _Explanation(
        # LLVM aborts, on an assertion or an error that it calls fatal; Halide throws its own errors (next entry).
        r"(?:/llvm/[^\n]*: Assertion (?P<what>[^\n]+) failed|LLVM ERROR: (?P<other>[^\n]+))",
        GeneratorFailureReason.CRASHED,
        "LLVM, Halide's code generator, crashes on this schedule of generator {name}: {what}. " + _HALIDE_IS_WRONG,
    ),
    _Explanation(
        r"(?P<what>Call of \w+ with argument \d+ undefined|Generated function does not pass LLVM's \w+"
        r"|Internal Error at [^\n]+\n[^\n]+)",
        GeneratorFailureReason.FAILED,
        "Halide's code generator fails on this schedule of generator {name}: {what}. " + _HALIDE_IS_WRONG,
    ),
    _Explanation(
        r"(?P<what>Can only unroll for loops over a constant extent)",
        GeneratorFailureReason.FAILED,
        "This schedule of generator {name} does not compile: {what}. "
        + _IF_ALL_FAIL
        + "an extent comes from a scalar input (make it a GeneratorParam) or from odd sizes.",
    ),
    _Explanation(
        r"Error: (?P<what>[^\n]* is not a bool: int32)",
        GeneratorFailureReason.FAILED,
        "Generator {name} failed: {what}. In Python, Halide 21 takes the estimate of a boolean scalar for an integer: "
        "write hl.u8(flag) == 1 where the scalar is used.",
    ),
    _Explanation(
        # Adams2019 and Anderson2021 end like this; before that Adams2019 names the Func that no state has a place for.
        r"(?:Found no legal way to schedule (?P<what>\S+) in the following State[\s\S]*)?Ran out of legal states",
        GeneratorFailureReason.DEAD_END,
        "The search of generator {name} came to a dead end: it found no schedule of {what} that keeps within the "
        "autoscheduler's limits on memory, repeated work and inlining.",
    ),
    _Explanation(
        # Adams2019 tiles reductions whose order counts, such as argmin over two variables, and Halide refuses it.
        r"In schedule for (?P<what>[^,\n]+), can't reorder RVars",
        GeneratorFailureReason.DEAD_END,
        "The search of generator {name} found a schedule that Halide refuses: it changes the order of the reduction of "
        "{what}, on which the result depends.",
    ),
    _Explanation(
        r"Could not compute plausible site for unscheduled Func: (?P<what>\S+?)\.?\s",
        GeneratorFailureReason.EXTERN_STAGE,
        "An extern stage of generator {name} reads {what}, which this schedule computes nowhere: Adams2019 and Li2018 "
        "do not schedule what extern stages read. A schedule of your own needs {what}.compute_root() or the like.",
    ),
    _Explanation(
        r"(?P<what>Index value passed is \d+; however, there are only \d+ functions in the pipeline)",
        GeneratorFailureReason.FAILED,
        "The schedule is for another pipeline than generator {name} makes with these parameters: {what}. "
        "Use the generator and the parameters that it was tuned with.",
    ),
    _Explanation(
        r"(?:Missing estimate for|Could not find estimate for"  # Adams2019: scalars; Mullapudi2016
        r"|Need an estimate on dimension \S+ of"  # Adams2019: outputs
        r"|Please provide a valid estimate for dimension \S+ of output) "  # Mullapudi2016, Li2018
        r"\"?(?P<what>[^\s\"]+)",
        GeneratorFailureReason.MISSING_ESTIMATE,
        "Generator {name} gives no estimate for {what}, which the autoscheduler needs. Give a size or a value with "
        "--estimate; or, in generate(), call buffer.set_estimates([(min, extent), …]) for every input and output "
        "buffer (C++: {{{{min, extent}}, …}}), and scalar.set_estimate(value) for every scalar input.",
    ),
    _Explanation(
        r"(?:Func|function) \"(?P<what>[^\"\n]+)\" "
        r"(?:has scheduling directive\(s\) applied|since it is scheduled to be)",  # Adams2019; Mullapudi2016
        GeneratorFailureReason.MANUAL_SCHEDULE,
        "Generator {name} schedules {what} by hand, although an autoscheduler runs. Put the manual schedule under "
        "`if not self.using_autoscheduler():` (C++: `if (!using_autoscheduler())`).",
    ),
    _Explanation(
        r"(?P<what>Cannot wrap \"[^\"\n]+\" in \"[^\"\n]+\") because",
        GeneratorFailureReason.FAILED,
        "The schedule of generator {name} is refused: {what}. Halide 21 takes in() and clone_in() only for the Func in "
        "whose definition the other is read, not for one that reads it through Funcs between. Name that Func.",
    ),
    _Explanation(
        r"Type is not defined for (?:In|Out)put '(?P<what>\w+)'",
        GeneratorFailureReason.BAD_PARAMETER,
        "Generator {name} leaves the type of {what} open. Give it, such as -p {what}.type=uint8.",
    ),
    _Explanation(
        r"Dimensions? (?:is|are) not defined for (?:In|Out)put '(?P<what>\w+)'",
        GeneratorFailureReason.BAD_PARAMETER,
        "Generator {name} leaves the number of dimensions of {what} open. Give it, such as -p {what}.dim=2.",
    ),
    _Explanation(
        r"has no GeneratorParam(?:\(s\))? named: \[?(?P<what>[^\]\n]+)",
        GeneratorFailureReason.UNKNOWN_PARAMETER,
        "Generator {name} has no generator parameter {what}. Compare {given} with the generator's GeneratorParams.",
    ),
    _Explanation(
        r"(?P<what>(?:Unable to parse|The value \S+ (?:of GeneratorParam|cannot be parsed)|"
        r"Enumeration value not found|Value out of range|invalid literal|could not convert)[^\n]*)",
        GeneratorFailureReason.BAD_PARAMETER,
        "A parameter of generator {name} has an invalid value: {what}. Check {given}.",
    ),
)
