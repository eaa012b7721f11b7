"""The command lines that go on from a run of `sdk autotune`."""

from __future__ import annotations

import shlex
from dataclasses import fields
from pathlib import Path

from autotune_loop.result import Outcome, TunedSchedule, TuneResult
from sdk.autotune_arguments import AutotuneArguments
from sdk.autotune_call import AutotuneCall
from sdk.display.follow_up import FollowUp

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
    "parallelism": "--parallelism",
    "batch_size": "--batch-size",
    "budget": "--budget",
    "seed": "--seed",
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
    return FollowUp(
        build=tuple(_build(call, tuned, call.target or result.target) for tuned in result.tuned),
        resume=None if result.outcome is Outcome.EXHAUSTED else _resume(given, call, result),
    )


def _build(call: AutotuneCall, tuned: TunedSchedule, target: str) -> str | None:
    if tuned.header is None:
        return None
    words = ["sdk", "build", call.generator, "--target", target]
    for key, value in tuned.argset.items():
        words += ["-p", f"{key}={value}"]
    if call.function_name is not None:
        words += ["--function-name", call.function_name]
    return shlex.join([*words, "--schedule", _from_here(tuned.header)])


def _resume(given: AutotuneArguments, call: AutotuneCall, result: TuneResult) -> str:
    words = ["sdk", "autotune", call.generator, "--target", call.target or result.target]
    for field in fields(AutotuneArguments):
        value = getattr(given, field.name)
        if field.name in _OPTIONS and value != field.default:
            for item in value if isinstance(value, list) else [value]:
                words += [_OPTIONS[field.name], str(item)]
    # A run that has begun its last round goes on only when it is given more of them.
    rounds = 2 * call.rounds if result.rounds >= call.rounds else call.rounds
    if rounds != AutotuneArguments.num_batches:
        words += ["--num-batches", str(rounds)]
    return shlex.join([*words, "--run-dir", _from_here(result.run_folder), "--resume"])


def _from_here(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
