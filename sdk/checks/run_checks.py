"""Whether a run's files, its database and its headers agree; nothing is changed."""

from __future__ import annotations

import fcntl
import math
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from halide_autotune.autotune_loop.candidate import Measured
from halide_autotune.autotune_loop.report.recorded_run import RecordedRun, read_recorded_run
from halide_autotune.autotune_loop.report.run_account import RunAccount, read_account
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.specification.tuning_task import (
    PARAMETERS_SUFFIX,
    published_names,
    published_paths,
    sample_file_name,
)
from halide_autotune.autotune_loop.store.featurization import read_featurization
from halide_autotune.autotune_loop.store.published import newest_published
from halide_autotune.autotune_loop.store.read_database import read_database
from halide_autotune.autotune_loop.store.sample_file import read_sample
from halide_autotune.sdk.checks.check import Check, try_check
from halide_autotune.sdk.display.quantities import count_text
from halide_autotune.targets.errors import GeneratorError, RunFolderError, SdkError, os_error_as
from halide_autotune.targets.process.content_cache import file_sha256
from halide_autotune.targets.schedule.header import read_schedule
from halide_autotune.weights.network import Network
from halide_autotune.weights.weights_file import read_weights, weights_sha256

# A `.sample` has its time in 32 bits.
_ROUNDING = 1e-6
_MOST_TOLD = 3
_FROM_A_COPY = "Restore it from a copy of the run folder."
_LEARN_AGAIN = "Delete the file and run again with --resume: the run learns again from all its samples."


def check_run(folder: Path) -> list[Check]:
    """Check a run folder: that it can be read, that every schedule is accounted for, that files are what rows say."""
    if _is_in_use(folder):
        found = "a process works in it, so that files and rows may differ for a moment"
        return [Check("in use", True, found), *_checks(folder)]
    return _checks(folder)


def _checks(folder: Path) -> list[Check]:
    try:
        run, account = read_recorded_run(folder), read_account(folder)
        published = list(_published(run))
    except RunFolderError as error:
        return [Check("run", False, error.message, error.next_step)]
    names = ", ".join(dict.fromkeys(task.generator_name for task in run.record.spec.tasks))
    return [
        Check("run", True, f"{names} for {run.record.spec.profile.name}, {run.clock_words}"),
        _database(folder),
        _account(folder, account),
        _samples(run),
        *published,
        *_size_schedules(run),
        *_weights(run),
    ]


def _is_in_use(folder: Path) -> bool:
    try:
        lock = os.open(folder / ".lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False


def _database(folder: Path) -> Check:
    path = folder / "tuning.db"
    try:
        rows = read_database(path, lambda connection: connection.execute("PRAGMA integrity_check").fetchall())
    except sqlite3.Error as error:
        rows = [(str(error),)]
    told = "; ".join(str(row[0]) for row in rows[:_MOST_TOLD])
    return Check(
        "tuning.db", told == "ok", "SQLite finds no damage" if told == "ok" else told, _fix(told, _FROM_A_COPY)
    )


def _account(folder: Path, account: RunAccount) -> Check:
    found = (
        f"{count_text(account.chosen, 'schedule')} chosen: {account.timed} timed, {account.failed} failed,"
        f" {account.not_done} not timed because the run ended"
    )
    if not account.unaccounted:
        return Check("schedules", True, found)
    left = f"{found}, {account.unaccounted} with neither a time nor a failure"
    return Check("schedules", False, left, f"Resume the run, which times them: sdk autotune --resume {folder}")


def _samples(run: RecordedRun) -> Check:
    """Each timed schedule has its files, and they say what the database says."""
    name = sample_file_name(run.record.spec.tasks)
    network = Network(run.record.spec.profile.autoscheduler.name)
    wrong = [
        f"{one.candidate.sample}: {problem}"
        for one in run.samples
        if (problem := _problem(one, run.folder / "samples" / one.candidate.sample, name, network))
    ]
    if not wrong:
        return Check(
            "files", True, f"those of {count_text(len(run.samples), 'timed schedule')} agree with the database"
        )
    further = f" (and {len(wrong) - _MOST_TOLD} more)" if len(wrong) > _MOST_TOLD else ""
    fix = (
        f"Delete a .sample that is named and resume the run, which writes it again: sdk autotune --resume {run.folder}."
        " Restore other files from a copy."
    )
    return Check("files", False, "; ".join(wrong[:_MOST_TOLD]) + further, fix)


def _problem(timed: Measured, folder: Path, name: str, network: Network) -> str:
    """What is wrong with the files of a timed schedule; empty if nothing is."""
    if timed.candidate.is_parameter_set:
        path = folder / f"{name}.{PARAMETERS_SUFFIX}"
        return "" if path.is_file() else f"{path.name} is missing"
    try:
        parse_schedule(read_schedule(folder / f"{name}.schedule.h"))
    except GeneratorError as error:
        return error.message
    if not timed.candidate.has_features:
        return ""
    try:
        features = read_featurization(folder / f"{name}.featurization", network)
        sample = read_sample(folder / f"{name}.sample", network)
    except SdkError as error:
        return error.message
    if features.schedule_sha256 != timed.candidate.schedule_sha256:
        return f"{name}.featurization is of another schedule"
    if not math.isclose(sample.runtime_ms, timed.median_ms, rel_tol=_ROUNDING):
        return f"{name}.sample says {sample.runtime_ms:.6g} ms, the database {timed.median_ms:.6g} ms"
    return ""


def _published(run: RecordedRun) -> Iterator[Check]:
    samples = run.folder / "samples"
    tasks, database = run.record.spec.tasks, run.folder / "tuning.db"
    for index, (name, path) in enumerate(zip(published_names(tasks), published_paths(samples, tasks), strict=True)):
        try:
            row = read_database(database, partial(newest_published, path=database, task_index=index))
        except sqlite3.Error as error:
            raise RunFolderError(f"{database} is damaged: {error}.", next_step=_FROM_A_COPY) from error
        if row is None:
            yield Check(path.name, True, "nothing is published yet")
            continue
        sha256, published = row
        if not sha256:
            problem = "it is there, but the run has withdrawn it" if path.exists() else ""
            yield Check(path.name, not problem, problem or "nothing is published", _fix(problem, f"Delete {path}."))
            continue
        problem = "it is not what the run has published" if _sha256_of(path) != sha256 else ""
        note = samples / f"best.{name}.benchmark.txt"
        if not problem and _text_of(note) != published.note(run.clock):
            problem = f"{note.name} beside it is not what the run has written"
        yield _as_published(run, path.name, published.sample, problem)


def _size_schedules(run: RecordedRun) -> Iterator[Check]:
    """The headers of the sizes that have their own are what the run has published."""
    for header in run.headers.values():
        for one in header.size_schedules:
            if one.is_own:
                is_same = _sha256_of(run.folder / "samples" / one.header) == one.header_sha256
                problem = "" if is_same else "it is not what the run has published"
                yield _as_published(run, one.header, one.sample, problem)


def _as_published(run: RecordedRun, name: str, sample: str, problem: str) -> Check:
    fix = f"Resume the run, which publishes it again: sdk autotune --resume {run.folder}"
    return Check(name, not problem, problem or f"{sample}, as in the database", _fix(problem, fix))


def _weights(run: RecordedRun) -> Iterator[Check]:
    """Until the first training is accepted, a run has those that it began with, or Halide's own."""
    samples, start = run.folder / "samples", run.record.made_with.start_weights_sha256
    halides = try_check("", partial(_weights_sha256, samples / "default.weights")).found
    trained = [training.sha256 for training in run.trainings if training.sha256]
    for name, known in (("start.weights", [start]), ("updated.weights", [start, halides, *trained])):
        check = try_check(name, partial(_weights_sha256, samples / name))
        if check.passed:
            problem = "" if check.found in known else "they are not what the run has recorded"
            check = Check(name, not problem, problem or "as recorded", _fix(problem, _FROM_A_COPY))
        elif name == "updated.weights":
            check = replace(check, fix=_LEARN_AGAIN)
        yield check


def _weights_sha256(path: Path) -> str:
    return weights_sha256(read_weights(path))


def _sha256_of(path: Path) -> str:
    with os_error_as(RunFolderError, f"{path} cannot be read"):
        return file_sha256(path) if path.is_file() else ""


def _text_of(path: Path) -> str:
    with os_error_as(RunFolderError, f"{path} cannot be read"):
        return path.read_text("utf-8", "replace") if path.is_file() else ""


def _fix(problem: str, fix: str) -> str:
    return fix if problem not in ("", "ok") else ""
