"""The run folder: samples in Halide's layout, run.toml, the database, a lock."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from halide_autotune.autotune_loop.candidate import (
    Built,
    BuiltObject,
    Candidate,
    Measured,
    SearchedSchedule,
    TrainingSample,
    sample_name,
)
from halide_autotune.autotune_loop.lowered.lowered_file import pack_lowered
from halide_autotune.autotune_loop.schedule.print_header import mend_header
from halide_autotune.autotune_loop.specification.tuning_task import (
    PARAMETERS_SUFFIX,
    published_names,
    published_paths,
    sample_file_name,
)
from halide_autotune.autotune_loop.store.featurization import read_featurization
from halide_autotune.autotune_loop.store.parameters_file import parameters_text
from halide_autotune.autotune_loop.store.published import Published
from halide_autotune.autotune_loop.store.run_database import RunDatabase
from halide_autotune.autotune_loop.store.run_record import FILE_NAME, RunRecord, differences, read_run_record
from halide_autotune.autotune_loop.store.sample_file import Sample, write_sample
from halide_autotune.autotune_loop.store.size_schedules import SizeSchedule
from halide_autotune.targets.build.executable import KernelObject
from halide_autotune.targets.errors import GeneratorError, RunFolderError, os_error_as, remedy
from halide_autotune.targets.lowering.lower import read_nest
from halide_autotune.targets.process.atomic_write import remove_unfinished, write_atomically
from halide_autotune.targets.process.file_lock import lock_alone
from halide_autotune.weights.network import Network
from halide_autotune.weights.weights_file import Weights, write_weights

_SCHEDULE_ID_ROUND = 10_000


class RunStore:
    """One run's folder, held by one process.

    Everything is on disk when a method returns; a folder whose process was killed at any moment can be resumed.

    Raises:
        RunFolderError: another process holds the folder; it has a run (without resume), none (with resume), or another
            run; it cannot be written.
    """

    def __init__(self, folder: Path, record: RunRecord, *, resume: bool) -> None:
        self.folder = folder.resolve()
        self.record = record
        self._autoscheduler = record.spec.profile.autoscheduler.name
        self._name = sample_file_name(record.spec.tasks)
        self._names = published_names(record.spec.tasks)
        self._tasks = record.spec.tasks
        self.samples = self.folder / "samples"
        self.work = self.folder / "work"
        self.objects = self.folder / "objects"
        if folder.exists() and not folder.is_dir():
            raise RunFolderError(f"{folder} is a file, not a folder.", next_step="Choose another --run-dir.")
        if resume and not self._holds_something():
            raise RunFolderError(
                f"{folder} has no run to resume.",
                next_step="Omit --resume to start one there.",
            )
        self._was_there = self.folder.exists() and any(self.folder.iterdir())
        with os_error_as(
            RunFolderError, f"The run folder {folder} cannot be created", next_step="Choose another --run-dir."
        ):
            for made in (self.samples, self.work, self.objects):
                made.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            self._hold()
            old = self._check(record, resume)
            shutil.rmtree(self.work, ignore_errors=True)
            self.work.mkdir()
            remove_unfinished(self.folder)
            timed = any(self.samples.glob("batch_*/*/*.sample"))
            self.database = RunDatabase(self.folder / "tuning.db", holds_results=timed)
            if old is not None:
                self._go_on(old, record)
        except BaseException:
            os.close(self._lock)
            raise

    def _holds_something(self) -> bool:
        return any((self.folder / name).exists() for name in (FILE_NAME, "tuning.db"))

    def _hold(self) -> None:
        try:
            lock_alone(self._lock)
        except BlockingIOError as error:
            raise RunFolderError(
                f"{self.folder} is in use by another process.",
                next_step="Wait until it ends, or choose another --run-dir.",
            ) from error

    def _check(self, record: RunRecord, resume: bool) -> RunRecord | None:
        """The record of the run that is resumed; None in a new run, whose record is written."""
        exists = (self.folder / FILE_NAME).exists()
        if not exists:
            if self._holds_something():
                raise RunFolderError(
                    f"{self.folder} is damaged: {FILE_NAME} is missing.",
                    next_step="Restore it from a copy, or start a new run.",
                )
            record.write(self.folder)
            return None
        if not resume:
            raise RunFolderError(
                f"{self.folder} already has a run.",
                next_step="Resume it with --resume, or choose another --run-dir.",
            )
        old = read_run_record(self.folder)
        changed = differences(old, record)
        if changed:
            raise RunFolderError(
                f"The run in {self.folder} was made with other things:\n" + "\n".join(changed) + "\n",
                next_step="Restore what the run was made with, or start a new run.",
            )
        return old

    def _go_on(self, old: RunRecord, record: RunRecord) -> None:
        """Write what was asked anew. What was confirmed against another header in use is confirmed no longer."""
        in_use, now = old.made_with.incumbent_sha256, record.made_with.incumbent_sha256
        for index, name in enumerate(self._names):
            newest = self.database.newest_published(index)
            if newest is not None and newest[1].confirmed and name in now and in_use.get(name, now[name]) != now[name]:
                self.database.add_published(index, newest[0], replace(newest[1], confirmed=False))
        if old.spec != record.spec or in_use != now:
            made_with = replace(old.made_with, incumbent_sha256=now)
            replace(old, spec=record.spec, made_with=made_with).write(self.folder)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            step = remedy(error) or "Remove what is in its place."
            raise RunFolderError(
                f"{error.filename2 or error.filename or self.folder} cannot be written: {error.strerror or error}.",
                next_step=f"{step} Then continue with --resume.",
            ) from error

    @property
    def start_weights(self) -> Path:
        """The weights that the run started from."""
        return self.samples / "start.weights"

    @property
    def default_weights(self) -> Path:
        """Halide's own weights, which find the default schedule."""
        return self.samples / "default.weights"

    @property
    def updated_weights(self) -> Path:
        """The newest accepted weights."""
        return self.samples / "updated.weights"

    def best_schedule(self, task_index: int) -> Path:
        """The path of the winner's header, or of the winning parameters."""
        return published_paths(self.samples, self._tasks)[task_index]

    def published_path(self, task_index: int) -> Path | None:
        """The same; None if nothing is published."""
        path = self.best_schedule(task_index)
        return path if path.is_file() else None

    def confirmed(self, task_index: int) -> Published | None:
        """What a play-off has decided and is still published as it was; None if there is no such thing."""
        newest, path = self.database.newest_published(task_index), self.published_path(task_index)
        with os_error_as(RunFolderError, f"{path} cannot be read"):
            sha256 = "" if path is None else hashlib.sha256(path.read_bytes()).hexdigest()
        return newest[1] if newest is not None and newest[1].confirmed and newest[0] == sha256 else None

    def batch_folder(self, round_index: int, task_index: int) -> Path:
        """samples/batch_<round>_<argset>, as in Halide's loop."""
        return self.samples / f"batch_{round_index}_{task_index}"

    def start_batch(self, round_index: int, task_index: int, weights: Weights, argset_text: str) -> Path:
        """Create a batch's folder; returns its used.weights."""
        folder = self.batch_folder(round_index, task_index)
        with self._writing():
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(folder / "extra_generator_args.txt", f"{argset_text}\n".encode())
        used = folder / "used.weights"
        write_weights(weights, used)
        return used

    def keep(
        self,
        searched: SearchedSchedule,
        round_index: int,
        task_index: int,
        sample_index: int,
        symbol: str,
        predicted_ms: float | None,
    ) -> Candidate:
        """Keep a chosen schedule as a candidate: its features in the batch's folder, its row in the database."""
        folder = self.candidate_folder(round_index, task_index, sample_index)
        with self._writing():
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self.featurization_path(folder), searched.featurization_path.read_bytes())
        candidate = Candidate(
            round_index=round_index,
            task_index=task_index,
            sample_index=sample_index,
            symbol=symbol,
            point=searched.point,
            schedule_sha256=searched.schedule_sha256,
            search_s=searched.duration_s,
            predicted_ms=predicted_ms,
        )
        self.database.add_candidate(candidate)
        return candidate

    def keep_schedule(self, candidate: Candidate, header_text: str) -> Candidate:
        """Keep a schedule that was made as data: its header in the batch's folder, its row in the database."""
        folder = self.samples / candidate.sample
        with self._writing():
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self.schedule_path(folder), header_text.encode())
        self.database.add_candidate(candidate)
        return candidate

    def keep_build(self, candidate: Candidate, built: BuiltObject) -> Built:
        """Keep a built candidate: its header or parameters and its loop nest in its folder, its object as long as it
        may win.
        """
        folder, target = self.samples / candidate.sample, self.object_path(candidate.symbol)
        contents = {}
        if candidate.parameters:
            contents[self.parameters_path(folder)] = parameters_text(candidate.parameters).encode()
        if candidate.has_features and built.schedule_path is not None:
            contents[self.schedule_path(folder)] = mend_header(built.schedule_path.read_text(), self._name).encode()
        if built.nest_path is not None:
            # One that is damaged is made again where it is asked for.
            with contextlib.suppress(OSError, GeneratorError):
                contents[self.lowered_path(folder)] = pack_lowered(read_nest(built.nest_path))
        with self._writing():
            folder.mkdir(parents=True, exist_ok=True)
            for path, content in contents.items():
                write_atomically(path, content)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(built.object_path, target)
            if built.nest_path is not None:
                built.nest_path.unlink(missing_ok=True)
        self.database.add_build(candidate.symbol, built.duration_s, target.stat().st_size)
        return Built(candidate, KernelObject(candidate.symbol, target))

    def keep_header(self, kind: str, task_index: int, header_text: str) -> Path:
        """Keep the header of a schedule that was not sampled in samples/<kind>/<argset>; returns that folder."""
        folder = self.samples / kind / str(task_index)
        with self._writing():
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self.schedule_path(folder), mend_header(header_text, self._name).encode())
        return folder

    def training_sample(self, measured: Measured, pipeline_id: int) -> TrainingSample:
        """A measured candidate with its features."""
        path = self.featurization_path(self.samples / measured.candidate.sample)
        return TrainingSample(measured, path, pipeline_id)

    def write_sample(self, sample: TrainingSample) -> None:
        """Write the `.sample` that Halide's tools read; candidates that failed have none."""
        featurization = read_featurization(sample.featurization_path, Network(self._autoscheduler))
        candidate = sample.measured.candidate
        schedule_id = candidate.round_index * _SCHEDULE_ID_ROUND + candidate.sample_index
        write_sample(
            Sample(featurization, sample.measured.median_ms, sample.pipeline_id, schedule_id),
            self.sample_path(sample.featurization_path.parent),
        )

    def publish(self, task_index: int, schedule_path: Path, published: Published, clock: str) -> Path:
        """Publish a schedule: its row in the database, the best file and `best.<name>.benchmark.txt`.

        Args:
            schedule_path: its header; of tuned parameters their file.
        """
        name, text = self._names[task_index], schedule_path.read_text()
        is_header = schedule_path.suffix == ".h"
        header, parameters = self.samples / f"best.{name}.schedule.h", self.samples / f"best.{name}.{PARAMETERS_SUFFIX}"
        content = (mend_header(text, name) if is_header else text).encode()
        # First, so that whoever finds the file finds its figures, even if the process is killed here.
        self.database.add_published(task_index, hashlib.sha256(content).hexdigest(), published)
        with self._writing():
            if is_header:
                write_atomically(header, content)
            if published.parameters:
                write_atomically(parameters, parameters_text(published.parameters).encode())
            if not is_header:
                header.unlink(missing_ok=True)
            write_atomically(self._best_note(task_index), published.note(clock).encode())
        return header if is_header else parameters

    def size_header(self, task_index: int, extents: str, schedule_path: Path) -> tuple[str, str]:
        """The file name and the text of a schedule's header as the one for a size."""
        name = self._names[task_index]
        return f"{_size_prefix(name)}{extents}.schedule.h", mend_header(
            schedule_path.read_text(), f"{name}_at_{extents}"
        )

    def publish_for_sizes(
        self, task_index: int, header_sha256: str, schedules: Sequence[SizeSchedule], files: Mapping[str, str]
    ) -> None:
        """Publish what is used at each size beside the published header of this text.

        Args:
            files: the headers of the sizes that have their own, by file name.
        """
        with self._writing():
            for path in self.samples.glob(f"{_size_prefix(self._names[task_index])}*.schedule.h"):
                if path.name not in files:
                    path.unlink()
            for file, text in files.items():
                write_atomically(self.samples / file, text.encode())
        # Last: whoever finds the row finds the files.
        self.database.add_size_schedules(task_index, header_sha256, schedules)

    def result_path(self, candidate_folder: Path) -> Path:
        """What would be published of a candidate: its header, or its parameters where it has none."""
        header, parameters = self.schedule_path(candidate_folder), self.parameters_path(candidate_folder)
        return parameters if parameters.is_file() and not header.is_file() else header

    def _best_note(self, task_index: int) -> Path:
        return self.samples / f"best.{self._names[task_index]}.benchmark.txt"

    def withdraw(self, task_index: int, published: Published) -> None:
        """Publish no header, because what stays has none; its row in the database says why."""
        self.database.add_published(task_index, "", published)
        with self._writing():
            for path in (self.best_schedule(task_index), self._best_note(task_index)):
                path.unlink(missing_ok=True)

    def kernels(self, symbols: Iterable[str]) -> list[KernelObject]:
        """Those of these kernels whose objects are there."""
        return [KernelObject(symbol, self.object_path(symbol)) for symbol in symbols if self.has_object(symbol)]

    def has_object(self, symbol: str) -> bool:
        """Whether a candidate's kernel object is there. A power cut may leave an empty file, which cannot be linked."""
        path = self.object_path(symbol)
        return path.is_file() and path.stat().st_size > 0

    def object_path(self, symbol: str) -> Path:
        """The path of a candidate's kernel object, which is kept as long as it may win."""
        return self.objects / symbol / f"{self._name}.o"

    def schedule_path(self, candidate_folder: Path) -> Path:
        """A candidate's header."""
        return candidate_folder / f"{self._name}.schedule.h"

    def parameters_path(self, candidate_folder: Path) -> Path:
        """A candidate's parameters, where they are tuned."""
        return candidate_folder / f"{self._name}.{PARAMETERS_SUFFIX}"

    def featurization_path(self, candidate_folder: Path) -> Path:
        """A candidate's features."""
        return candidate_folder / f"{self._name}.featurization"

    def lowered_path(self, candidate_folder: Path) -> Path:
        """A candidate's loop nest, if it was lowered."""
        return candidate_folder / f"{self._name}.lowered"

    def has_sample(self, candidate_folder: Path) -> bool:
        """Whether a candidate's `.sample` is there; after a power cut it may be empty."""
        path = self.sample_path(candidate_folder)
        return path.is_file() and path.stat().st_size > 0

    def sample_path(self, candidate_folder: Path) -> Path:
        """A timed candidate's sample."""
        return candidate_folder / f"{self._name}.sample"

    def candidate_folder(self, round_index: int, task_index: int, sample_index: int) -> Path:
        """The folder of a candidate's files."""
        return self.samples / sample_name(round_index, task_index, sample_index)

    def discard_if_unused(self) -> None:
        """Delete a new folder whose run ended before its first candidate, so that the next try can use it."""
        if not self._was_there and self.database.next_round() == 0:
            shutil.rmtree(self.folder, ignore_errors=True)

    def close(self) -> None:
        """Close the database, delete the scratch files and release the folder; a second call does nothing."""
        if self._lock < 0:
            return
        self.database.close()
        shutil.rmtree(self.work, ignore_errors=True)
        os.close(self._lock)
        self._lock = -1


def _size_prefix(name: str) -> str:
    return f"best.{name}.at_"
