"""The autoschedulers of Halide that the loop runs, with their parameters."""

from __future__ import annotations

from pathlib import Path

from autotune_loop.candidate import SearchPoint
from autotune_loop.run_context import RunContext
from targets.generator_run import AutoschedulerRequest
from targets.halide_install import HalideInstall
from targets.profile import MachineParameters

# Mullapudi2016's own default for the cost of a load against an arithmetic operation.
_MULLAPUDI_BALANCE = 40
_FALLBACK_CACHE_BYTES = 8 * 2**20


def adams2019(context: RunContext, halide: HalideInstall, point: SearchPoint, weights: Path) -> AutoschedulerRequest:
    """The search at one point; `weights` is the file it is guided by, noise included."""
    name = context.profile.autoscheduler.name
    parameters = {
        **context.profile.autoscheduler.parameters,
        "parallelism": str(context.parallelism),
        "beam_size": str(point.beam_size),
        "random_dropout": str(point.random_dropout),
        "random_dropout_seed": str(point.seed),
        "weights_path": str(weights),
    }
    return AutoschedulerRequest(name, halide.plugin_path(name), parameters)


def mullapudi2016(halide: HalideInstall, parallelism: int, machine: MachineParameters) -> AutoschedulerRequest:
    """The heuristic autoscheduler that makes the reference: independent of the one being tuned, and it ends."""
    parameters = {
        "parallelism": str(parallelism),
        "last_level_cache_size": str(machine.last_level_cache_bytes or _FALLBACK_CACHE_BYTES),
        "balance": str(_MULLAPUDI_BALANCE),
    }
    return AutoschedulerRequest("Mullapudi2016", halide.plugin_path("Mullapudi2016"), parameters)


def li2018(halide: HalideInstall, parallelism: int) -> AutoschedulerRequest:
    """The second choice for the reference."""
    return AutoschedulerRequest("Li2018", halide.plugin_path("Li2018"), {"parallelism": str(parallelism)})
