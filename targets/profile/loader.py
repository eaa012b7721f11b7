"""Target profiles: found by name or path, read from TOML, laid over what they extend, validated.

A profile is a file `NAME.toml`, in the user's folder or among the built-in ones (the user's win), or any
path. With `extends = "arm64"` it starts from another profile; a user's `arm64.toml` may extend the built-in
`arm64`. The built-in `host` is completed by probing this machine.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from targets.errors import ProfileError, SdkError
from targets.profile.fields import check_fields, flatten, lay_over, make_profile, nearest
from targets.profile.profile import BASELINE_WEIGHTS, ProfileListing, TargetProfile

BUILT_IN_FOLDER = Path(__file__).resolve().parent / "profiles"
BUILT_IN = "built in"
HOST = "host"
_LARGEST_FILE_BYTES = 1024 * 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_GLIBC_OF_HOST_PROGRAMS = "2.28"


def load_profile(name_or_path: str, user_folder: Path | None = None) -> TargetProfile:
    """Load and validate one profile.

    Args:
        name_or_path: a name; or a path, which is anything that ends in `.toml` or contains a slash.
        user_folder: the folder of the user's own profiles; it need not exist.

    Raises:
        ProfileError: there is no such profile, or a field of it is wrong.
        ToolchainError: the profile is, or extends, `host`, and Halide is missing.
    """
    file = _find(name_or_path, user_folder, beside=None, seen=())
    name = file.stem
    if not _NAME.fullmatch(name):
        raise ProfileError(
            f"{_where(file)}: {name!r} is not a profile's name; expected letters, digits, '.', '_' and '-'.",
            next_step="Rename the file.",
        )
    fields = _fields_of(file, user_folder, seen=())
    source = BUILT_IN if _is_built_in(file) else str(file)
    return make_profile(fields, name=name, source=source, where=_where(file))


def list_profiles(user_folder: Path | None = None) -> list[ProfileListing]:
    """Return every profile that can be chosen by name, `host` first, then in the order of their names.

    A profile that cannot be loaded is listed with the reason.

    Raises:
        ProfileError: the user's folder cannot be read.
    """
    listings: list[ProfileListing] = []
    for name in profile_names(user_folder):
        file = _candidates(name, user_folder)[0]
        source = BUILT_IN if _is_built_in(file) else str(file)
        try:
            listings.append(ProfileListing(name, source, load_profile(name, user_folder), None))
        except SdkError as error:
            listings.append(ProfileListing(name, source, None, str(error)))
    return listings


def profile_names(user_folder: Path | None = None) -> list[str]:
    """Return the names of all profiles, without reading them: `host` first, then sorted.

    Raises:
        ProfileError: the user's folder cannot be read.
    """
    names = {file.stem for file in _toml_files(BUILT_IN_FOLDER)}
    if user_folder is not None:
        names |= {file.stem for file in _toml_files(user_folder)}
    return sorted(names, key=lambda name: (name != HOST, name))


def _toml_files(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.iterdir() if file.suffix == ".toml")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ProfileError(f"The profile folder {folder} cannot be read ({error.strerror}).") from error


def _candidates(name: str, user_folder: Path | None) -> list[Path]:
    """Return the files that a name may mean, the one that wins first."""
    folders = [BUILT_IN_FOLDER] if user_folder is None else [user_folder, BUILT_IN_FOLDER]
    return [file for folder in folders if _is_there(file := folder / f"{name}.toml")]


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
    if fresh or found:
        return (fresh or found)[0]
    close = nearest(name_or_path, profile_names(user_folder))
    hint = f"; the nearest is '{close}'" if close else ""
    raise ProfileError(f"There is no target profile '{name_or_path[:80]}'{hint}.", next_step=_LIST_THEM)


_LIST_THEM = "`sdk targets` lists them; a path must end in .toml or contain a slash."


def _fields_of(file: Path, user_folder: Path | None, *, seen: Sequence[Path]) -> dict[str, object]:
    """Return the checked fields of a file over those of what it extends."""
    where, this = _where(file), file.resolve()
    if this in seen:
        circle = " -> ".join(path.stem for path in (*seen[seen.index(this) :], this))
        raise ProfileError(f"{where}: key 'extends' goes round in a circle ({circle}); expected an end.")
    fields = check_fields(flatten(_read_toml(file, where), where), where)
    if this == BUILT_IN_FOLDER / f"{HOST}.toml":
        fields = lay_over(fields, check_fields(_probed_fields(), where))
    _resolve_start_weights(fields, file, where)
    if "extends" not in fields:
        return fields
    chain = (*seen, this)
    try:
        base_file = _find(str(fields["extends"]), user_folder, beside=file.parent, seen=chain)
    except ProfileError as error:
        raise ProfileError(f"{where}: key 'extends': {error.message}", next_step=error.next_step) from error
    return lay_over(_fields_of(base_file, user_folder, seen=chain), fields)


def _resolve_start_weights(fields: dict[str, object], file: Path, where: str) -> None:
    """Make the path of the start weights absolute; it is relative to the profile's own folder."""
    given = str(fields.get("start_weights", BASELINE_WEIGHTS))
    if given == BASELINE_WEIGHTS:
        return
    path = (file.parent / given).absolute()
    if not path.is_file():
        raise ProfileError(
            f"{where}: key 'start_weights': there is no file {path}; expected '{BASELINE_WEIGHTS}' or a weights file."
        )
    fields["start_weights"] = str(path)


def _read_toml(file: Path, where: str) -> Mapping[str, object]:
    try:
        if file.stat().st_size > _LARGEST_FILE_BYTES:
            raise ProfileError(f"{where}: the file has more than {_LARGEST_FILE_BYTES} bytes; expected a profile.")
        return tomllib.loads(file.read_bytes().decode("utf-8"))
    except FileNotFoundError as error:
        raise ProfileError(f"There is no profile file {file}.", next_step=_LIST_THEM) from error
    except OSError as error:
        raise ProfileError(f"The profile file {file} cannot be read ({error.strerror}).") from error
    except RecursionError as error:
        raise ProfileError(f"{where}: the file is nested too deeply; expected a profile.") from error
    except UnicodeDecodeError as error:
        raise ProfileError(f"{where}: byte {error.start} is not UTF-8; expected a TOML text file.") from error
    except ValueError as error:  # tomllib's own error, with the line, or a number too long for Python
        raise ProfileError(f"{where}: not valid TOML: {error}.") from error


def _probed_fields() -> dict[str, object]:
    """Return what only this machine can say about the profile `host`."""
    from targets.profile.host_probe import host_halide_target, probe_host

    host = probe_host()
    found: dict[str, object] = {
        "halide_target": host_halide_target(),
        "machine.parallelism": host.logical_cores,
        "toolchain.triple": f"{host.architecture}-linux-gnu.{_GLIBC_OF_HOST_PROGRAMS}",
        "machine.l1_data_cache_bytes": host.l1_data_cache_bytes,
        "machine.l2_cache_bytes": host.l2_cache_bytes,
        "machine.last_level_cache_bytes": host.last_level_cache_bytes,
    }
    return {key: value for key, value in found.items() if value is not None}


def _is_built_in(file: Path) -> bool:
    return file.resolve().parent == BUILT_IN_FOLDER


def _where(file: Path) -> str:
    """Say which file, for the start of a message."""
    return f"the built-in profile {file.name}" if _is_built_in(file) else str(file)
