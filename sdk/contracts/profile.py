"""What a target profile of a package must keep to."""

from __future__ import annotations

from pathlib import Path

from halide_autotune.sdk.contracts.require import require
from halide_autotune.targets.errors import SdkError
from halide_autotune.targets.halide_install import find_halide_install
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.profile.packaged_profiles import PROFILES
from halide_autotune.targets.profile.profile import BASELINE_WEIGHTS
from halide_autotune.weights.weights_file import read_weights


def check_profile(name: str) -> None:
    """Check that a profile of an installed package loads by its name, alone and with what it extends.

    Raises:
        AssertionError: it does not keep to something; the message says to what.
        UsageError: there is none of that name, or its package cannot be imported.
    """
    PROFILES.load(name)
    PROFILES.refuse_taken([name])
    try:
        profile = load_profile(name)
        find_halide_install().plugin_path(profile.autoscheduler.name)
        if profile.start_weights != BASELINE_WEIGHTS:
            read_weights(Path(profile.start_weights))
    except SdkError as error:
        raise AssertionError(f"The profile {name} must load; it does not: {error}") from error
    require(profile.description.strip() != "", f"The profile {name} must say in `description` what hardware it is for")
