"""Checks of what installed packages add: whether each extension loads."""

from __future__ import annotations

from collections.abc import Iterator

from halide_autotune.autotune_loop.search.models.model import MODELS
from halide_autotune.autotune_loop.search.techniques.registry import TECHNIQUES
from halide_autotune.devices.device_link import TRANSPORTS
from halide_autotune.sdk.checks.check import Check
from halide_autotune.targets.extension_point import ExtensionPoint
from halide_autotune.targets.profile.packaged_profiles import PROFILES
from halide_autotune.targets.profile.profile import TOOLCHAINS

POINTS: tuple[ExtensionPoint, ...] = (TECHNIQUES, MODELS, TRANSPORTS, PROFILES, TOOLCHAINS)


def check_extensions() -> Iterator[Check]:
    """Import what installed packages add, of every kind; none is made."""
    for point in POINTS:
        for entry in point.installed():
            problem = point.problem(entry)
            name = f"{point.noun} {entry.name}"
            if problem is None:
                package = "an unknown package" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
                yield Check(name, True, f"{entry.value}, of {package}")
            else:
                yield Check(name, False, problem.message, problem.next_step)
