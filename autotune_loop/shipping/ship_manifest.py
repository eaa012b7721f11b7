"""`ship.json`: the manifest of a shipped folder, for tools and for the next `sdk ship`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from halide_autotune.autotune_loop.shipping.files.func_table import FuncRow
from halide_autotune.autotune_loop.shipping.sizes.request import SizeOutcome, SizeVerdict
from halide_autotune.targets.errors import RunFolderError
from halide_autotune.targets.values.checks import (
    any_text,
    exactly,
    list_of,
    matching,
    member_of,
    optional,
    plain_value,
    row_of,
    table_of,
)
from halide_autotune.targets.values.records import Source, plain, record

FILE_NAME = "ship.json"
_FORMAT = "halide-sdk-shipped"
_VERSION = 1
_MAXIMUM_BYTES = 64 * 2**20
_c_name = matching(r"[A-Za-z_][A-Za-z0-9_]*", "a C name")
_file_name = matching(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*", "the name of a file")
_file_name_or_nothing = matching(r"([A-Za-z0-9_][A-Za-z0-9_.+-]*)?", "the name of a file, or empty")
_sha256 = matching(r"[0-9a-f]{64}", "a SHA-256")
_func_row = row_of(any_text, *[matching(r"[0-9a-f]{16}", "a hash of 16 hexadecimal digits")] * 2)
_outcome_row = row_of(any_text, member_of(SizeVerdict), any_text)


def _funcs(value: object) -> tuple[FuncRow, ...]:
    rows = list_of(_func_row)(value)
    return tuple(FuncRow(name, int(definition, 16), int(domains, 16)) for name, definition, domains in rows)


def _sizes(value: object) -> tuple[SizeOutcome, ...]:
    return tuple(SizeOutcome(*row) for row in list_of(_outcome_row)(value))


@dataclass(frozen=True)
class ShippedSchedule:
    """One schedule of one generator for one target.

    Attributes:
        name: of the generator's function; common to its schedules for all targets.
        function_name: the `<name>` of its own `apply_schedule_<name>`.
        dispatch_target: Halide's target string with the features that decide whether it fits.
        header, python_module: its files.
        provenance: the facts, as in its constants.
        parameters: of the generator; of a path only the file's name.
        funcs: the pipeline that it was made for.
        sizes: the results at other sizes than its estimates; None if they were not tried.
        guard: the C header that calls another kernel at sizes that it does not take; empty without one.
        for_size: the extents that it is for, such as '640x480'; empty for all sizes.
        by_size: the C source that calls the kernel for the size; empty where no size has a schedule of its own.
    """

    name: Annotated[str, _c_name]
    function_name: Annotated[str, _c_name]
    dispatch_target: Annotated[str, matching(r"[a-z0-9_-]+", "a Halide target")]
    header: Annotated[str, _file_name]
    python_module: Annotated[str, _file_name]
    provenance: Annotated[Mapping[str, str | int | float | bool | None], table_of(optional(plain_value))]
    parameters: Mapping[str, str]
    funcs: Annotated[tuple[FuncRow, ...], _funcs]
    sizes: Annotated[tuple[SizeOutcome, ...] | None, _sizes] = None
    guard: Annotated[str, _file_name_or_nothing] = ""
    for_size: Annotated[str, matching(r"(\d+(x\d+)*)?", "extents such as 640x480, or empty")] = ""
    by_size: Annotated[str, _file_name_or_nothing] = ""

    @property
    def files(self) -> tuple[str, ...]:
        """The names of its files."""
        return tuple(filter(None, (self.header, self.python_module, self.guard, self.by_size)))

    @property
    def generator(self) -> str:
        """The name of its generator."""
        return str(self.provenance.get("generator"))

    @property
    def target_profile(self) -> str:
        """The profile that it was tuned for."""
        return str(self.provenance.get("target_profile"))


@dataclass(frozen=True)
class ShippedParameters:
    """The tuned parameters of one generator for one target.

    Attributes:
        name: of the generator's function.
        files: names of the files that have them.
        provenance: the facts, as in the files' comments.
        parameters: the generator's others; of a path only the file's name.
        tuned: the tuned ones.
    """

    name: Annotated[str, _c_name]
    target_profile: Annotated[str, _file_name]
    files: Annotated[tuple[str, ...], list_of(_file_name)]
    provenance: Annotated[Mapping[str, str | int | float | bool | None], table_of(optional(plain_value))]
    parameters: Mapping[str, str]
    tuned: Mapping[str, str]

    @property
    def generator(self) -> str:
        """The name of its generator."""
        return str(self.provenance.get("generator"))


@dataclass(frozen=True)
class ShipManifest:
    """A shipped folder.

    Attributes:
        schedules, parameter_sets: sorted by name and target.
        files: file name → SHA-256.
    """

    schedules: tuple[ShippedSchedule, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    parameter_sets: tuple[ShippedParameters, ...] = ()

    def of_target(self, schedule: ShippedSchedule) -> tuple[ShippedSchedule, ...]:
        """A schedule with those of the same generator and target, which are for other sizes."""
        key = (schedule.name, schedule.target_profile)
        return tuple(one for one in self.schedules if (one.name, one.target_profile) == key)

    def to_dict(self) -> dict[str, object]:
        """A JSON-ready form; equal for equal manifests."""
        schedules = [_schedule_fields(schedule) for schedule in self.schedules]
        files = dict(sorted(self.files.items()))
        sets = {"parameter_sets": [plain(each) for each in self.parameter_sets]} if self.parameter_sets else {}
        return {"format": _FORMAT, "version": _VERSION, "schedules": schedules, **sets, "files": files}

    def to_json(self) -> str:
        """The text of `ship.json`."""
        return json.dumps(self.to_dict(), indent=2) + "\n"


def _schedule_fields(schedule: ShippedSchedule) -> dict[str, object]:
    fields: dict[str, object] = plain(schedule)
    fields["funcs"] = [[row.name, f"{row.definition:016x}", f"{row.domains:016x}"] for row in schedule.funcs]
    if schedule.sizes is not None:
        fields["sizes"] = [[outcome.size, outcome.verdict.value, outcome.message] for outcome in schedule.sizes]
    return fields


@dataclass(frozen=True)
class _ManifestFile:
    format: Annotated[str, exactly(_FORMAT)]
    version: Annotated[int, exactly(_VERSION)]
    schedules: tuple[ShippedSchedule, ...]
    files: Annotated[Mapping[str, str], table_of(_sha256, names=_file_name)]
    parameter_sets: tuple[ShippedParameters, ...] = ()


def read_manifest(folder: Path) -> ShipManifest:
    """The manifest of a shipped folder.

    Raises:
        RunFolderError: there is none, or it is damaged; the message has the place.
    """
    path = folder / FILE_NAME
    source = Source(f"{path} is damaged", RunFolderError, next_step="Restore it, or ship to another folder.")
    try:
        text = source.read(path, most_bytes=_MAXIMUM_BYTES)
    except FileNotFoundError as error:
        raise RunFolderError(
            f"{folder} is not a shipped folder: its {FILE_NAME} cannot be read ({error.strerror}).",
            next_step="Pass a folder that `sdk ship` wrote.",
        ) from error
    file = source.check(record(_ManifestFile), source.json(text))
    return ShipManifest(file.schedules, file.files, file.parameter_sets)
