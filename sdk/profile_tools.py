"""Tools that a profile may use and that a variable names: a variable that names nothing is a mistake."""

from __future__ import annotations

from sdk.settings import Settings
from targets.hexagon_sdk import find_hexagon_sdk
from targets.profile import TargetProfile


def check_hexagon_sdk(profile: TargetProfile, settings: Settings) -> None:
    """For a Hexagon profile, make sure that the SDK that is named is one; none need be named.

    Raises:
        ToolchainError: the folder is no Hexagon SDK.
    """
    if settings.hexagon_sdk_root is not None and profile.halide_target.startswith("hexagon-"):
        find_hexagon_sdk(settings.hexagon_sdk_root)
