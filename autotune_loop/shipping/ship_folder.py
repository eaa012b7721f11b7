"""Writing a shipped folder; only shipped files that nobody has changed are overwritten."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from halide_autotune.autotune_loop.shipping.files.cpp_headers import print_cpp_dispatch
from halide_autotune.autotune_loop.shipping.files.python_module import print_python_dispatch
from halide_autotune.autotune_loop.shipping.ship_manifest import (
    FILE_NAME,
    ShipManifest,
    ShippedParameters,
    ShippedSchedule,
    read_manifest,
)
from halide_autotune.targets.errors import RunFolderError, UsageError, os_error_as
from halide_autotune.targets.generator.python_modules import SCHEDULE_MODULE_SUFFIX
from halide_autotune.targets.process.atomic_write import write_atomically
from halide_autotune.targets.process.content_cache import file_sha256
from halide_autotune.targets.process.file_lock import file_lock

# The folder of files until all are moved into place: what a killed process leaves is not taken for a shipped file. All
# of them are written once the manifest is there.
_WRITTEN = ".written"
# Target features that are not about the hardware: a schedule fits with and without them.
_NOT_OF_HARDWARE = re.compile(
    r"debug|enable_backtraces|no_asserts|no_bounds_query|no_runtime|user_context|profile(_by_timer)?|tune_\w+|"
    r"c_plus_plus_name_mangling|large_buffers|fuzz_float_stores|soft_float_abi|[mta]san|sanitizer_coverage|trace_\w+|"
    r"strict_float|check_unsafe_promises|embed_bitcode|enable_llvm_loop_opt|llvm_large_code_model|simulator|semihosting"
)


def open_ship_folder(folder: Path) -> ShipManifest:
    """The manifest of a folder, empty for a new or empty one. Hidden files are ignored.

    Waits while another process writes to the folder, and finishes the work of one that was killed.

    Raises:
        RunFolderError: it has files that `sdk ship` did not write, or changed ones; or it cannot be read or written.
    """
    with _writing(folder):
        if not folder.exists():
            return ShipManifest()
        if not folder.is_dir():
            raise RunFolderError(f"{folder} is not a folder.", next_step="Choose another -o.")
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            raise RunFolderError(
                f"{folder} cannot be written.", next_step="Choose another -o, or change its permissions."
            )
        with file_lock(folder):  # the folder itself: a lock file would be committed with the others
            return _open(folder)


def _open(folder: Path) -> ShipManifest:
    _put_in_place(folder)
    names = shown_files(folder)
    if not names:
        return ShipManifest()
    if FILE_NAME not in names:
        raise RunFolderError(
            f"{folder} has files that were not shipped, such as {names[0]}.",
            next_step="Choose a separate folder with -o.",
        )
    manifest = read_manifest(folder)
    _check_unchanged(folder, manifest, manifest.files)
    return manifest


def _check_unchanged(folder: Path, manifest: ShipManifest, names: Iterable[str]) -> None:
    for name in names:
        path = folder / name
        if path.is_file() and file_sha256(path) != manifest.files.get(name):
            raise RunFolderError(f"{path} was changed after it was shipped.", next_step="Move it away to replace it.")


def shown_files(folder: Path) -> list[str]:
    """The names of the files that are not hidden, sorted.

    Raises:
        OSError: it cannot be read.
    """
    return sorted(path.name for path in folder.iterdir() if not path.is_dir() and not path.name.startswith("."))


def write_ship_folder(
    folder: Path,
    shipped: Sequence[ShippedSchedule],
    texts: Mapping[str, str],
    parameter_sets: Sequence[ShippedParameters] = (),
) -> ShipManifest:
    """Add schedules and parameters to a folder, in place of what it has for their targets; returns the new manifest.

    One process writes at a time, and its files are moved into place once all of them are on the disk.

    Args:
        texts: the files of `shipped` and `parameter_sets`.

    Raises:
        RunFolderError: as `open_ship_folder`; or a file to write exists and was not shipped.
        UsageError: two schedules would have the same file name.
    """
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with file_lock(folder):
            # It has what another process has shipped meanwhile.
            before = _open(folder)
            # A run replaces all of an older one of its target, which may have had schedules for single sizes, tuned
            # parameters, or schedules that are for other parameters than the new ones.
            new = {*map(_place, shipped), *map(_place, parameter_sets)}
            kept = [one for one in before.schedules if _place(one) not in new]
            kept_sets = [one for one in before.parameter_sets if _place(one) not in new]
            _check_names((*kept, *shipped), (*kept_sets, *parameter_sets))
            schedules = tuple(sorted((*kept, *shipped), key=lambda one: (one.name, one.function_name)))
            sets = tuple(sorted((*kept_sets, *parameter_sets), key=_place))
            all_texts = {**texts, **_dispatch_texts(schedules)}
            _check_free(folder, before, all_texts)
            hashes = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in all_texts.items()}
            owned = {name for schedule in schedules for name in schedule.files}
            owned |= {name for one in sets for name in one.files}
            files = {name: sha256 for name, sha256 in before.files.items() if name in owned}
            manifest = ShipManifest(schedules, {**files, **hashes}, sets)
            _write_all(folder, {**all_texts, FILE_NAME: manifest.to_json()})
            _put_in_place(folder)
    return manifest


def _place(one: ShippedSchedule | ShippedParameters) -> tuple[str, str]:
    """The generator's function and the profile that it is for."""
    return one.name, one.target_profile


def _writing(folder: Path) -> AbstractContextManager[None]:
    return os_error_as(RunFolderError, f"{folder} cannot be written", next_step="Choose another -o.")


def _check_free(folder: Path, before: ShipManifest, names: Iterable[str]) -> None:
    for name in names:
        if name not in before.files and (folder / name).exists():
            raise RunFolderError(
                f"{folder / name} was not shipped and would be overwritten.",
                next_step="Move it away, or choose another -o.",
            )


def _write_all(folder: Path, texts: Mapping[str, str]) -> None:
    """All of the files, the manifest last; or none where the disk is full.

    Raises:
        OSError: they cannot be written.
    """
    written = folder / _WRITTEN
    written.mkdir()
    try:
        for name, text in texts.items():
            write_atomically(written / name, text.encode())
    except OSError:
        shutil.rmtree(written, ignore_errors=True)
        raise


def _put_in_place(folder: Path) -> None:
    """Move written files into place and delete those that are no longer shipped; also after a killed process.

    Raises:
        RunFolderError: a file that would be replaced was changed since that process was killed.
        OSError: a file cannot be moved or deleted.
    """
    written = folder / _WRITTEN
    # The manifest is moved last: until then --check reports the difference.
    if (written / FILE_NAME).exists():
        manifest = read_manifest(written)
        before = read_manifest(folder) if (folder / FILE_NAME).exists() else ShipManifest()
        names = sorted({path.name for path in written.iterdir()} - {FILE_NAME})
        _check_unchanged(folder, before, names)
        for name in names:
            (written / name).replace(folder / name)
        for name in before.files.keys() - manifest.files.keys():
            (folder / name).unlink(missing_ok=True)
        (written / FILE_NAME).replace(folder / FILE_NAME)
    shutil.rmtree(written, ignore_errors=True)


def _check_names(schedules: Iterable[ShippedSchedule], parameter_sets: Iterable[ShippedParameters]) -> None:
    owners: dict[str, str] = {}
    for parameters in parameter_sets:
        owners |= dict.fromkeys(
            parameters.files, f"the parameters of {parameters.name} for {parameters.target_profile}"
        )
    for schedule in schedules:
        one = f"the schedule {schedule.function_name} for {schedule.target_profile}"
        every = f"the choice among the schedules of {schedule.name}"
        names = {schedule.header: one, schedule.python_module: one}
        names |= {dispatch_header(schedule.name): every, _dispatch_module(schedule.name): every}
        for name, owner in names.items():
            if owners.setdefault(name, owner) != owner:
                raise UsageError(
                    f"{owners[name]} and {owner} would both be {name}.",
                    next_step="Ship one to another folder, or tune it with another --function-name.",
                )


def dispatch_target(halide_target: str) -> str:
    """A target string with only the features that decide whether a schedule fits."""
    words = halide_target.split("-")
    return "-".join(word for word in words if not _NOT_OF_HARDWARE.fullmatch(word))


def dispatch_header(name: str) -> str:
    """The header that chooses among the targets of `name`."""
    return f"{name}.schedule.h"


def _dispatch_module(name: str) -> str:
    return f"{name}{SCHEDULE_MODULE_SUFFIX}"


def _dispatch_texts(schedules: Iterable[ShippedSchedule]) -> dict[str, str]:
    by_name: dict[str, list[ShippedSchedule]] = {}
    for schedule in schedules:
        by_name.setdefault(schedule.name, []).append(schedule)
    texts = {}
    for name, same in by_name.items():
        texts[dispatch_header(name)] = print_cpp_dispatch(name, same)
        texts[_dispatch_module(name)] = print_python_dispatch(name, same)
    return texts
