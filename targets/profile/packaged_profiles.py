"""Profiles that installed packages bring: files `NAME.toml` beside their modules."""

from __future__ import annotations

from pathlib import Path

from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.extension_point import ExtensionPoint

BUILT_IN_FOLDER = Path(__file__).resolve().parent / "profiles"
# An entry point leads to the package (a folder with an __init__.py) in whose folder NAME.toml is.
PROFILES = ExtensionPoint(
    group="halide_autotune.profiles",
    noun="target profile",
    protocol="docs/targets.md",
    methods=(),
    built_in=tuple(sorted(file.stem for file in BUILT_IN_FOLDER.glob("*.toml"))),
    remedy="name another profile",
    is_made=False,
)


def packaged_profile(name: str) -> Path | None:
    """The file of the profile that a package brings under a name; None where no package does.

    Raises:
        UsageError: the package cannot be imported, or has no such file.
    """
    if name in PROFILES.built_in or all(entry.name != name for entry in PROFILES.installed()):
        return None
    module = PROFILES.load(name)
    origin = getattr(module, "__file__", None)
    file = None if origin is None else Path(origin).resolve().parent / f"{name}.toml"
    if file is None or not file.is_file():
        raise UsageError(f"{PROFILES.title(name)} has no file {name}.toml.", next_step="Reinstall or mend the package.")
    return file
