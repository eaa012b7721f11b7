"""The command lines that go on from a run of `sdk autotune`."""

from __future__ import annotations

import shlex
from dataclasses import fields
from pathlib import Path

from autotune_loop.run.result import Outcome, TunedSchedule, TuneResult
from sdk.display.display import FollowUp
from sdk.options.autotune_arguments import AutotuneArguments
from sdk.options.autotune_call import AutotuneCall
from sdk.options.generator_spec import GeneratorSpec

# Whatever else was given is repeated: a resumed run must be of the same thing.
_OPTIONS = {
    "parameters": "-p",
    "generator_arg_sets": "--generator-arg-sets",
    "function_name": "--function-name",
    "size": "--size",
    "scalar": "--scalar",
    "input": "--input",
    "input_seed": "--input-seed",
    "device": "--device",
    "inventory": "--inventory",
    "device_patience": "--device-patience",
    "scheduler": "--scheduler",
    "farm_certificates": "--farm-certificates",
    "priority": "--priority",
    "clock": "--clock",
    "hexagon_sdk_root": "--hexagon-sdk-root",
    "parallelism": "--parallelism",
    "batch_size": "--batch-size",
    "budget": "--budget",
    "seed": "--seed",
    "incumbent": "--incumbent",
    "objective": "--objective",
    "device_weight": "--device-weight",
    "worst_tolerance": "--worst-tolerance",
    "play_off_turns": "--play-off-turns",
    "weights": "--weights",
    "loss": "--loss",
    "epochs": "--epochs",
    "learning_rate": "--learning-rate",
    "pool_factor": "--pool-factor",
    "random_share": "--random-share",
    "diversity": "--diversity",
    "jobs": "--jobs",
    "search_limit": "--search-limit",
    "full_search_limit": "--full-search-limit",
    "memory_limit": "--memory-limit",
}


def follow_up(given: AutotuneArguments, call: AutotuneCall, result: TuneResult) -> FollowUp:
    """What to type next: a build with each winner, and the same run again."""
    specs = [spec for spec in call.generators for _ in spec.argsets]
    target = call.target or result.target
    return FollowUp(
        build=tuple(
            _build(spec, tuned, target, given.hexagon_sdk_root)
            for spec, tuned in zip(specs, result.tuned, strict=False)
        ),
        resume=None if result.outcome is Outcome.EXHAUSTED else _resume(given, call, result),
        look=_about(result, "report") if result.totals.samples_timed else None,
        ship=_about(result, "ship", "-o", "schedules") if any(tuned.header for tuned in result.tuned) else None,
    )


def _about(result: TuneResult, command: str, *arguments: str) -> str:
    return shlex.join(["sdk", command, _from_here(result.run_folder), *arguments])


def _build(spec: GeneratorSpec, tuned: TunedSchedule, target: str, hexagon_sdk_root: Path | None) -> str | None:
    if tuned.header is None:
        return None
    words = ["sdk", "build", spec.generator, "--target", target]
    for key, value in tuned.parameters.items():
        words += ["-p", f"{key}={value}"]
    if spec.function_name is not None:
        words += ["--function-name", spec.function_name]
    if hexagon_sdk_root is not None:
        words += ["--hexagon-sdk-root", str(hexagon_sdk_root)]
    return shlex.join([*words, "--schedule", _from_here(tuned.header)])


def _resume(given: AutotuneArguments, call: AutotuneCall, result: TuneResult) -> str:
    words = ["sdk", "autotune", *(given.generator or ()), "--target", call.target or result.target]
    for field in fields(AutotuneArguments):
        value = getattr(given, field.name)
        if field.name in _OPTIONS and value != field.default:
            for item in value if isinstance(value, list) else [value]:
                words += [_OPTIONS[field.name], str(item)]
    # A run that has begun its last round goes on only when it is given more of them.
    rounds = 2 * call.rounds if result.totals.rounds >= call.rounds else call.rounds
    if rounds != AutotuneArguments.num_batches:
        words += ["--num-batches", str(rounds)]
    return shlex.join([*words, "--run-dir", _from_here(result.run_folder), "--resume"])


def _from_here(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
