"""The schedule that a run found, with its times and options."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from halide_autotune.autotune_loop.play_off.verdict import VerdictReason
from halide_autotune.autotune_loop.schedule.model import Schedule
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.shipping.recorded_facts import check_has_winner, read_recorded_facts
from halide_autotune.autotune_loop.shipping.run_winner import RunWinner
from halide_autotune.autotune_loop.store.published import NoDefault, Published
from halide_autotune.autotune_loop.store.run_record import RunRecord
from halide_autotune.autotune_loop.store.size_schedules import SizeSchedule
from halide_autotune.targets.errors import GeneratorError, RunFolderError
from halide_autotune.targets.process.content_cache import file_sha256
from halide_autotune.targets.schedule.header import read_schedule


@dataclass(frozen=True)
class RunSchedule(RunWinner):
    """The schedule of one argument set of a run, ready to be shipped.

    Attributes:
        header_text: the content of best.<name>.schedule.h.
        for_size: the size that it is for; None for all of them.
    """

    schedule: Schedule
    header_text: str
    for_size: SizeSchedule | None = None

    @property
    def header(self) -> Path:
        """Its best.<name>.schedule.h."""
        return self.path

    @property
    def place(self) -> str:
        """What tells its files from those of other sizes: empty, or such as 'at_640x480'."""
        return "" if self.for_size is None else f"at_{self.for_size.extents}"

    def for_sizes(self) -> list[RunSchedule]:
        """The schedules of the sizes that have their own.

        Raises:
            RunFolderError: one is missing, was changed, or is damaged.
        """
        return [self._for_size(one) for one in self.facts.size_schedules if one.is_own]

    def _for_size(self, one: SizeSchedule) -> RunSchedule:
        header = self.path.with_name(one.header)
        check_has_winner(self.folder, header, self.index)
        text, schedule = _read(header)
        if file_sha256(header) != one.header_sha256:
            raise RunFolderError(
                f"{header} was changed after the run had published it.",
                next_step="Continue the run, which publishes it again; or build with the header itself.",
            )
        published = Published(
            sample=one.sample,
            symbol=one.symbol,
            confirmed=True,
            reason=VerdictReason.FASTER.value,
            message=one.message,
            tuned=one.tuned,
            speed_up=one.speed_up,
            no_default=NoDefault("at this size it was timed beside the schedule for all sizes"),
            parameters=self.facts.published.parameters,
        )
        facts = replace(self.facts, published=published, size_schedules=())
        return replace(self, facts=facts, path=header, schedule=schedule, header_text=text, for_size=one)


def read_run_schedule(folder: Path, record: RunRecord, index: int, header: Path) -> RunSchedule:
    """The schedule that a run has published for an argument set.

    Raises:
        RunFolderError: it is missing, was changed, or is damaged.
    """
    check_has_winner(folder, header, index)
    text, schedule = _read(header)
    facts = read_recorded_facts(header, folder / "tuning.db", index)
    return RunSchedule(folder, record, index, facts, header, schedule, text)


def _read(header: Path) -> tuple[str, Schedule]:
    try:
        text = read_schedule(header)
        return text, parse_schedule(text)
    except GeneratorError as error:
        where = "" if error.message.startswith(str(header)) else f"{header}: "
        raise RunFolderError(
            f"{where}{error.message}", next_step="The header was changed or damaged. Continue the run, or tune again."
        ) from error
