"""Halide's autoschedulers with the parameters that a machine decides."""

from __future__ import annotations

from collections.abc import Mapping

from targets.generator_run import AutoschedulerRequest
from targets.halide_install import HalideInstall
from targets.profile import MachineParameters, TargetProfile

# Mullapudi2016's own default for the cost of a load against an arithmetic operation.
_MULLAPUDI_BALANCE = 40
_FALLBACK_CACHE_BYTES = 8 * 2**20


def mullapudi2016(halide: HalideInstall, parallelism: int, machine: MachineParameters) -> AutoschedulerRequest:
    """The heuristic autoscheduler that makes references: independent of the one being tuned, and it ends."""
    parameters = {
        "parallelism": str(parallelism),
        "last_level_cache_size": str(machine.last_level_cache_bytes or _FALLBACK_CACHE_BYTES),
        "balance": str(_MULLAPUDI_BALANCE),
    }
    return _request(halide, "Mullapudi2016", parameters)


def li2018(halide: HalideInstall, parallelism: int) -> AutoschedulerRequest:
    """The second choice for a reference."""
    return _request(halide, "Li2018", {"parallelism": str(parallelism)})


def reference_autoschedulers(
    halide: HalideInstall, parallelism: int, machine: MachineParameters
) -> tuple[AutoschedulerRequest, ...]:
    """Those that may make a reference, the preferred first."""
    return mullapudi2016(halide, parallelism, machine), li2018(halide, parallelism)


def profile_autoscheduler(
    halide: HalideInstall, profile: TargetProfile, parallelism: int, parameters: Mapping[str, str]
) -> AutoschedulerRequest:
    """The profile's own autoscheduler (Adams2019), with further parameters of one search."""
    merged = {**profile.autoscheduler.parameters, "parallelism": str(parallelism), **parameters}
    return _request(halide, profile.autoscheduler.name, merged)


def _request(halide: HalideInstall, name: str, parameters: Mapping[str, str]) -> AutoschedulerRequest:
    return AutoschedulerRequest(name, (halide.plugin_path(name),), parameters)
