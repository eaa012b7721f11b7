"""Times of several boards, or of one board before and after, brought to one scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from halide_autotune.autotune_loop.execute.device_session import Timing
from halide_autotune.autotune_loop.store.board_factor import LARGEST_SCATTER, BoardFactor, ReferenceTime, board_factor
from halide_autotune.autotune_loop.store.read_database import CalibrationRow
from halide_autotune.autotune_loop.store.run_database import RunDatabase
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.timing.measure_settings import MeasureSettings
from halide_autotune.devices.timing.measurement import Measurement


class Calibration:
    """For each device and epoch a factor, from the reference schedules that it times.

    The first device sets the scale, for as long as the run folder lives. A schedule that it has not timed joins the
    scale with the first device that has a factor and times it.
    """

    def __init__(self, database: RunDatabase) -> None:
        self._database = database
        self._factors: dict[tuple[int, str, str], BoardFactor] = {}
        self._scale: dict[int, dict[str, ReferenceTime]] = {}
        self._first: dict[int, str] = {}
        for row in database.calibrations():
            self._factors[(row.task_index, row.device, row.epoch)] = row.board
            self._extend_scale(row.task_index, row.device, row.board, row.times)

    def factor(self, task_index: int, timing: Timing) -> float:
        """Return the factor for a device's times; 1 without a reference.

        Raises:
            DeviceTrouble: no factor fits all the board's reference schedules.
        """
        if not (timing.references and timing.epoch):
            return 1.0
        found = self._factor(task_index, timing.epoch, timing.references)
        if found.fits:
            return found.factor
        raise DeviceTrouble(
            TroubleKind.OUTLIER,
            f"{timing.references[0].device} cannot be compared with {self._first[task_index]}: its times are"
            f" {1 / found.factor:.2f} times as long, but that of {found.furthest} deviates by {found.spread:.0%} from"
            f" this ratio (allowed: {LARGEST_SCATTER:.0%}).",
            next_step="Check that both are of one kind, cool and idle, or tune for it in a run of its own.",
        )

    def on_board(self, task_index: int, device: str, settings: MeasureSettings) -> MeasureSettings:
        """The settings with the time after which a kernel is hopeless as that board needs it."""
        known = [found for (task, name, _), found in self._factors.items() if (task, name) == (task_index, device)]
        if settings.give_up_over_s is None or not known:
            return settings
        newest = known[-1]
        return replace(settings, give_up_over_s=settings.give_up_over_s / newest.factor)

    def _factor(self, task_index: int, epoch: str, references: tuple[Measurement, ...]) -> BoardFactor:
        device = references[0].device
        key = (task_index, device, epoch)
        if key not in self._factors:
            times = {one.kernel: ReferenceTime(one.minimum_s * 1e3, one.spread_s * 1e3) for one in references}
            found = board_factor(self._scale.get(task_index, {}), times)
            self._factors[key] = found
            self._extend_scale(task_index, device, found, times)
            self._database.add_calibration(CalibrationRow(task_index, device, epoch, found, times))
        return self._factors[key]

    def _extend_scale(
        self, task_index: int, device: str, found: BoardFactor, times: Mapping[str, ReferenceTime]
    ) -> None:
        scale = self._scale.setdefault(task_index, {})
        if not found.fits or (scale and not found.schedules):
            return
        self._first.setdefault(task_index, device)
        for name, time in times.items():
            scale.setdefault(name, ReferenceTime(time.time_ms * found.factor, time.spread_ms * found.factor))
