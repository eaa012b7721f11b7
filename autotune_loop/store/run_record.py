"""`run.toml`: the options of a run, with versions and hashes; a resumed run must match it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from halide_autotune.autotune_loop.specification.run_spec import RunSpec
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask
from halide_autotune.targets.errors import ProfileError, RunFolderError, os_error_as
from halide_autotune.targets.process.atomic_write import write_atomically
from halide_autotune.targets.profile.halide_target import parse_halide_target
from halide_autotune.targets.values.checks import Check
from halide_autotune.targets.values.options import differing_options, value_at, words_of
from halide_autotune.targets.values.records import Source, plain, record, toml_text

FILE_NAME = "run.toml"
SCHEMA_VERSION = 3
_C_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PROFILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
# Digits of a hash.
_SHOWN = 12


@dataclass(frozen=True)
class RunFacts:
    """With what a run was made.

    Attributes:
        plugin_sha256: of the autoscheduler's plug-in.
        device: the kind of the devices: a run can be resumed on other boards of its profile.
        devices: their names.
        clock: what times were measured with.
        clock_model: what simulated times come from; empty for every other clock.
        processor: of this machine, where the times are its own; else empty.
        generator_sha256: of each task's file.
        incumbent_sha256, input_sha256: of these files, by the names of what they are for.
    """

    halide_version: str
    toolchain: str
    plugin_sha256: str
    device: str
    devices: tuple[str, ...]
    clock: str
    start_weights_sha256: str
    generator_sha256: tuple[str, ...]
    clock_model: str = ""
    processor: str = ""
    incumbent_sha256: Mapping[str, str] = field(default_factory=dict)
    input_sha256: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RunRecord:
    """A run: what it is asked, and with what it is made."""

    spec: RunSpec
    made_with: RunFacts

    def rows(self) -> list[tuple[str, object]]:
        """Everything in it, a dotted key and a value for each row of a table."""
        return list(_rows(plain(self), ""))

    def write(self, folder: Path) -> None:
        """Write `run.toml` into the run folder.

        Raises:
            RunFolderError: it cannot be written.
        """
        tables = {"schema_version": SCHEMA_VERSION, **plain(self)}
        text = toml_text(tables, comment="The options of this run, and what it was made with. --resume reads it.")
        with os_error_as(RunFolderError, f"{folder / FILE_NAME} cannot be written"):
            write_atomically(folder / FILE_NAME, text.encode())


def _rows(value: object, key: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _rows(item, f"{key}.{name}" if key else name)
    elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        for place, item in enumerate(value):
            yield from _rows(item, f"{key}.{place}")
    elif value not in (None, "", []):
        yield key, value


def read_run_record(folder: Path) -> RunRecord:
    """Read `run.toml` of a run folder.

    Raises:
        RunFolderError: there is none, it is damaged, or another version of the SDK wrote it.
    """
    path = folder / FILE_NAME
    source = Source(f"{path} is damaged", RunFolderError, next_step="Restore it from a copy, or start a new run.")
    try:
        tables = source.toml(source.read(path))
    except FileNotFoundError as error:
        raise RunFolderError(
            f"{folder} is not a run folder: it has no {FILE_NAME}.", next_step="Pass the folder of a run."
        ) from error
    # The first layout had two flat tables of texts, and no number.
    first = all(isinstance(tables.get(name), dict) for name in ("identity", "settings"))
    version = tables.pop("schema_version", 1 if first else None)
    if isinstance(version, int) and version != SCHEMA_VERSION:
        age = "an earlier" if version < SCHEMA_VERSION else "a later"
        raise RunFolderError(
            f"{path} was written by {age} version of the SDK (layout {version}; this one reads {SCHEMA_VERSION}).",
            next_step="Use that version for this run, or start a new run.",
        )
    check: Check[RunRecord] = record(RunRecord, absent_is_none=True)
    found = source.check(check, tables)
    _check_names(found, source)
    return found


def _check_names(found: RunRecord, source: Source) -> None:
    """What becomes part of file names and of shipped sources must be harmless there."""
    spec = found.spec
    if not spec.tasks or len(found.made_with.generator_sha256) != len(spec.tasks):
        raise source.refuse("key 'spec.tasks' must be a list of at least one task, each with the hash of its file.")
    for task in spec.tasks:
        if not _C_NAME.fullmatch(task.function_name) or not task.reference.name:
            raise source.refuse("key 'spec.tasks': function_name must be the name of a C function.")
    if not _PROFILE_NAME.fullmatch(spec.profile.name):
        raise source.refuse("key 'spec.profile.name' must be the name of a profile.")
    try:
        parse_halide_target(spec.profile.halide_target)
    except ProfileError as error:
        raise source.refuse(f"key 'spec.profile.halide_target': {error.message}") from error


def differences(old: RunRecord, new: RunRecord) -> list[str]:
    """Lines that say how two runs differ in what is tuned and with what; empty when one may go on as the other."""
    was, now = dict(_identity(old)), dict(_identity(new))
    lines = [
        f"  {key}: the run has {was.get(key) or 'nothing'}, now {now.get(key) or 'nothing'}"
        for key in dict.fromkeys([*was, *now])
        if was.get(key) != now.get(key)
    ]
    lines += _changed_generators(old, new)
    for option in differing_options(old.spec.options, new.spec.options):
        if option.facts.is_fixed and option.path[0] != "devices":
            values = [words_of(option, value_at(each.spec.options, option)) for each in (old, new)]
            lines.append(f"  {option.keyword}: the run has {values[0]}, now {values[1]}")
    return lines


def _identity(run: RunRecord) -> Iterator[tuple[str, object]]:
    spec, made_with = run.spec, run.made_with
    yield "generators", "; ".join(_task(task) for task in spec.tasks)
    yield "profile", spec.profile.name
    yield "halide_target", spec.profile.halide_target
    yield "halide_version", made_with.halide_version
    yield "toolchain", made_with.toolchain
    yield "autoscheduler", (spec.profile.autoscheduler.name, dict(spec.profile.autoscheduler.parameters))
    yield "plugin_sha256", made_with.plugin_sha256
    yield "parallelism", spec.parallelism
    yield "device", made_with.device
    yield "clock", made_with.clock
    yield "clock_model", made_with.clock_model
    yield "start_weights_sha256", made_with.start_weights_sha256
    yield "input_sha256", dict(made_with.input_sha256)
    yield "card", "" if spec.profile.machine.gpu is None else spec.profile.machine.gpu.name


def _changed_generators(old: RunRecord, new: RunRecord) -> Iterator[str]:
    """Of one and the same generator: others are told by their names."""
    hashes = zip(old.made_with.generator_sha256, new.made_with.generator_sha256, strict=False)
    for was, now, (then, here) in zip(old.spec.tasks, new.spec.tasks, hashes, strict=False):
        if _task(was) == _task(now) and then != here:
            file, hashed = now.reference.file, f"sha256 {then[:_SHOWN]}, now {here[:_SHOWN]}"
            yield f"  generator {now.generator_name}: {file}, or a file that it is made from, has changed ({hashed})"


def _task(task: TuningTask) -> str:
    parameters = "".join(f" {key}={value}" for key, value in task.parameters.items())
    return f"{task.reference.kind.value} {task.generator_name} as {task.function_name}{parameters}"
