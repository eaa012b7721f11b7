"""Timing beside another kernel, and alone on a device where that kernel itself fails."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from halide_autotune.devices.timing.measure import Session, measure_kernel
from halide_autotune.devices.timing.measure_settings import MeasureSettings
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason, Measurement
from halide_autotune.targets.process.stop_signal import StopSignal

NOT_THE_KERNELS_FAULT = (MeasureFailureReason.DEVICE, MeasureFailureReason.STOPPED)


@dataclass
class PairedTiming:
    """Knows which kernels others can be timed beside on one device.

    A failure beside a kernel that nothing was timed beside yet may be that kernel's: then it is timed alone, once.

    Attributes:
        failures: kernel → why it cannot be used, for people.
    """

    failures: dict[str, str] = field(default_factory=dict)
    _proved: set[str] = field(default_factory=set)

    def measure(
        self,
        session: Session,
        executable: str,
        kernel: str,
        settings: MeasureSettings,
        reference: str | None,
        stop: StopSignal,
    ) -> Measurement | MeasureFailure:
        """Check and time a kernel as the settings say; see `MeasureSettings.alone_without_it`."""
        other = settings.beside
        alone = replace(settings, beside=None)
        if other in self.failures and settings.alone_without_it:
            return measure_kernel(session, executable, kernel, alone, reference, stop)
        result = measure_kernel(session, executable, kernel, settings, reference, stop)
        if other is None or not settings.alone_without_it or not session.device.clock.is_noisy:
            return result
        if isinstance(result, Measurement):
            self._proved.add(other)
        elif other not in self._proved and result.reason not in NOT_THE_KERNELS_FAULT:
            by_itself = measure_kernel(session, executable, other, alone, None, stop)
            if isinstance(by_itself, Measurement):
                self._proved.add(other)
            elif by_itself.reason in NOT_THE_KERNELS_FAULT:
                return replace(by_itself, kernel=kernel, under_way=False)
            else:
                self.failures[other] = by_itself.message
                return measure_kernel(session, executable, kernel, alone, reference, stop)
        return result
