"""What must be the same on all machines of a farm, and the message for one that differs."""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from halide_autotune.targets.errors import FarmError
from halide_autotune.targets.halide_install import HalideInstall, find_halide_install
from halide_autotune.targets.values.checks import Unfit, matching, table_of
from halide_autotune.targets.values.records import record

_PACKAGE = "halide-autotune-sdk"
# The folders whose code runs on workers; `sdk` is the command line's.
_CODE = ("targets", "weights", "devices", "autotune_loop")
_SHOWN_DIGITS = 12
_MOST_PLUGINS = 50
# Shown to people.
_short_text = matching("[ -~]{0,120}", "at most 120 printable ASCII characters")


@dataclass(frozen=True)
class FarmVersions:
    """What a machine would build and time with.

    Attributes:
        sdk: the SDK's version and the hash of its code, since a checkout changes without a new version.
        plugins: autoscheduler → SHA-256 of its plug-in; None for a worker that builds nothing.
    """

    sdk: Annotated[str, _short_text]
    halide: Annotated[str, _short_text]
    distributed: Annotated[str, _short_text]
    python: Annotated[str, _short_text]
    plugins: Annotated[Mapping[str, str] | None, table_of(_short_text, names=_short_text, most=_MOST_PLUGINS)]

    @classmethod
    def from_fields(cls, fields: object) -> FarmVersions:
        """Read what another machine says, of whatever version.

        Raises:
            FarmError: it is not that.
        """
        try:
            return record(cls, passes_unknown=True)(fields)
        except Unfit as error:
            raise FarmError(
                error.message("The other side does not say which versions it has"),
                next_step="Start schedulers with `sdk farm scheduler` and workers with `sdk farm worker`.",
            ) from error


def own_versions(*, builds: bool) -> FarmVersions:
    """This machine's.

    Args:
        builds: it builds schedules, so that its plug-ins matter.

    Raises:
        ToolchainError: Halide is not installed, or incomplete.
    """
    halide = find_halide_install()
    return FarmVersions(
        sdk=f"{_version(_PACKAGE)} (code {_code_sha256()[:_SHOWN_DIGITS]})",
        halide=halide.version,
        distributed=_version("distributed"),
        python=".".join(platform.python_version_tuple()[:2]),
        plugins=_plugins(halide) if builds else None,
    )


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


@lru_cache(maxsize=1)
def _code_sha256() -> str:
    """Of our own files. A change of one while the process runs does not concern the process."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for package in _CODE:
        for path in sorted((root / package).rglob("*")):
            if path.is_file() and path.suffix in (".py", ".c", ".h", ".cpp"):
                digest.update(f"{path.relative_to(root)}\0".encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _plugins(halide: HalideInstall) -> dict[str, str]:
    return {name: halide.plugin_sha256(name) for name in halide.plugin_names()}


def check_versions(mine: FarmVersions, its: FarmVersions, me: str, it: str) -> None:
    """Refuse the other side where something that must be the same is not.

    Args:
        me, it: what the two are called, such as 'the scheduler' and 'worker lab2'.

    Raises:
        FarmError: with what each side has.
    """
    found = list(_differences(mine, its))
    if not found:
        return
    each = "; ".join(f"{what}: {here} on {me}, {there} on {it}" for what, here, there, _ in found)
    raise FarmError(f"{it[:1].upper()}{it[1:]} differs from {me}. {each}.", next_step=found[0][3])


def _differences(mine: FarmVersions, its: FarmVersions) -> Iterator[tuple[str, str, str, str]]:
    """What differs, what each has, and what to do about it."""
    if mine.sdk != its.sdk:
        yield "SDK", mine.sdk, its.sdk, "Install the same SDK on both machines."
    pip = {"Halide": ("halide", mine.halide, its.halide), "Dask": ("distributed", mine.distributed, its.distributed)}
    for what, (package, here, there) in pip.items():
        if here != there:
            yield what, here, there, f"Install the same version on both, for example: pip install '{package}=={here}'"
    if mine.python != its.python:
        yield "Python", mine.python, its.python, "Create the virtual environment with the same Python on both."
    if mine.plugins is None or its.plugins is None:
        return
    for name in sorted({*mine.plugins, *its.plugins}):
        here, there = (versions.get(name, "none")[:_SHOWN_DIGITS] for versions in (mine.plugins, its.plugins))
        if here != there:
            step = f"Reinstall Halide where it was changed: pip install --force-reinstall 'halide=={mine.halide}'"
            yield f"plug-in {name}", here, there, step
