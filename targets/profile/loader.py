"""Target profiles: found by name or path, read from TOML, laid over what they extend, validated.

A profile is a file `NAME.toml`, in the user's folder, among the built-in ones or in an installed package (the first of
them wins), or any path. With `extends = "arm64"` it starts from another profile; a user's `arm64.toml` may extend the
built-in `arm64`. The built-in `host` is completed by probing this machine.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from halide_autotune.targets.errors import ProfileError, SdkError
from halide_autotune.targets.profile.fields import check_tables, lay_over, make_profile
from halide_autotune.targets.profile.packaged_profiles import BUILT_IN_FOLDER, PROFILES, packaged_profile
from halide_autotune.targets.profile.profile import BASELINE_WEIGHTS, ProfileListing, TargetProfile
from halide_autotune.targets.values.checks import nearest_hint
from halide_autotune.targets.values.records import Source

BUILT_IN = "built in"
HOST = "host"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_GLIBC_OF_HOST_PROGRAMS = "2.28"


def load_profile(name_or_path: str, user_folder: Path | None = None) -> TargetProfile:
    """Load and validate one profile.

    Args:
        name_or_path: a name; or a path, which is anything that ends in `.toml` or contains a slash.
        user_folder: the folder of the user's own profiles; it need not exist.

    Raises:
        ProfileError: there is no such profile, or a field of it is wrong.
        UsageError: the package that brings it cannot be used.
        ToolchainError: the profile is, or extends, `host`, and Halide is missing.
    """
    file = _find(name_or_path, user_folder, beside=None, seen=())
    name, source = file.stem, _source(file)
    if not _NAME.fullmatch(name):
        raise source.refuse(
            f"{name!r} is not a profile's name; expected letters, digits, '.', '_' and '-'.",
            next_step="Rename the file.",
        )
    tables = _tables_of(file, user_folder, seen=())
    return make_profile(tables, name=name, origin=_origin(file), source=source)


def list_profiles(user_folder: Path | None = None) -> list[ProfileListing]:
    """Return every profile that can be chosen by name, `host` first, then in the order of their names.

    A profile that cannot be loaded is listed with the reason.

    Raises:
        ProfileError: the user's folder cannot be read.
    """
    listings: list[ProfileListing] = []
    for name in profile_names(user_folder):
        found = _candidates(name, user_folder)
        origin = _origin(found[0]) if found else "an installed package"
        try:
            listings.append(ProfileListing(name, origin, load_profile(name, user_folder), None))
        except SdkError as error:
            listings.append(ProfileListing(name, origin, None, str(error)))
    return listings


def profile_names(user_folder: Path | None = None) -> list[str]:
    """Return the names of all profiles, without reading them: `host` first, then sorted.

    Raises:
        ProfileError: the user's folder cannot be read.
    """
    names = {file.stem for folder in _folders(user_folder) for file in _toml_files(folder)} | {*PROFILES.names()}
    return sorted(names, key=lambda name: (name != HOST, name))


def _folders(user_folder: Path | None) -> list[Path]:
    return [BUILT_IN_FOLDER] if user_folder is None else [user_folder, BUILT_IN_FOLDER]


def _toml_files(folder: Path) -> list[Path]:
    try:
        return [file for file in folder.iterdir() if file.suffix == ".toml"]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ProfileError(f"The profile folder {folder} cannot be read ({error.strerror}).") from error


def _candidates(name: str, user_folder: Path | None) -> list[Path]:
    """Return the files that a name may mean, the one that wins first."""
    return [file for folder in _folders(user_folder) if _is_there(file := folder / f"{name}.toml")]


def _is_there(file: Path) -> bool:
    try:
        return file.exists()
    except PermissionError:
        return True  # reading it will say what is wrong
    except OSError:
        return False  # the name is too long for a file


def _find(name_or_path: str, user_folder: Path | None, *, beside: Path | None, seen: Sequence[Path]) -> Path:
    """Return a profile's file; one in `seen` is passed over: a user's `arm64` may extend `arm64`."""
    if not name_or_path or not name_or_path.isprintable():
        raise ProfileError(f"{name_or_path!r} is not the name or path of a target profile.", next_step=_LIST_THEM)
    if name_or_path.endswith(".toml") or "/" in name_or_path:
        given = Path(name_or_path).expanduser() if name_or_path.startswith("~/") else Path(name_or_path)
        return given if beside is None else beside / given
    found = _candidates(name_or_path, user_folder)
    fresh = [file for file in found if file.resolve() not in seen]
    if not fresh and (packaged := packaged_profile(name_or_path)) is not None:
        found = [*found, packaged]
        fresh = [file for file in found if file.resolve() not in seen]
    if fresh or found:
        return (fresh or found)[0]
    hint = nearest_hint(name_or_path, profile_names(user_folder))
    raise ProfileError(f"There is no target profile '{name_or_path[:80]}'{hint}.", next_step=_LIST_THEM)


_LIST_THEM = "`sdk targets` lists them; a path must end in .toml or contain a slash."


def _tables_of(file: Path, user_folder: Path | None, *, seen: Sequence[Path]) -> dict[str, Any]:
    """Return the checked tables of a file over those of what it extends."""
    source, this = _source(file), file.resolve()
    if this in seen:
        circle = " -> ".join(path.stem for path in (*seen[seen.index(this) :], this))
        raise source.refuse(f"key 'extends' goes round in a circle ({circle}); expected an end.")
    try:
        tables = source.toml(source.read(file))
    except FileNotFoundError as error:
        raise ProfileError(f"There is no profile file {file}.", next_step=_LIST_THEM) from error
    check_tables(tables, source)
    if this == BUILT_IN_FOLDER / f"{HOST}.toml":
        tables = lay_over(tables, _probed_tables())
    _resolve_start_weights(tables, file, source)
    base = tables.pop("extends", None)
    if base is None:
        return tables
    chain = (*seen, this)
    try:
        base_file = _find(str(base), user_folder, beside=file.parent, seen=chain)
    except ProfileError as error:
        raise source.refuse(f"key 'extends': {error.message}", next_step=error.next_step) from error
    return lay_over(_tables_of(base_file, user_folder, seen=chain), tables)


def _resolve_start_weights(tables: dict[str, Any], file: Path, source: Source) -> None:
    """Make the path of the start weights absolute; it is relative to the profile's own folder."""
    given = tables.get("start_weights", BASELINE_WEIGHTS)
    if given == BASELINE_WEIGHTS:
        return
    path = (file.parent / given).absolute()
    if not path.is_file():
        raise source.refuse(
            f"key 'start_weights': there is no file {path}; expected '{BASELINE_WEIGHTS}' or a weights file."
        )
    tables["start_weights"] = str(path)


def _probed_tables() -> dict[str, Any]:
    """Return what only this machine can say about the profile `host`."""
    from halide_autotune.targets.profile.host_probe import host_halide_target, probe_host

    host = probe_host()
    machine = {
        "parallelism": host.logical_cores,
        "l1_data_cache_bytes": host.l1_data_cache_bytes,
        "l2_cache_bytes": host.l2_cache_bytes,
        "last_level_cache_bytes": host.last_level_cache_bytes,
    }
    return {
        "halide_target": host_halide_target(),
        "machine": {key: value for key, value in machine.items() if value is not None},
        "toolchain": {"triple": f"{host.architecture}-linux-gnu.{_GLIBC_OF_HOST_PROGRAMS}"},
    }


def _origin(file: Path) -> str:
    return BUILT_IN if file.resolve().parent == BUILT_IN_FOLDER else str(file)


def _source(file: Path) -> Source:
    return Source(f"the built-in profile {file.name}" if _origin(file) == BUILT_IN else file, ProfileError)
