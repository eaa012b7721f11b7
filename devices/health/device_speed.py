"""Whether a board keeps the speed that it had at the start of a run, by its canary."""

from __future__ import annotations

import time
from collections.abc import Callable

from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.health.canary import LARGEST_CHANGE, LARGEST_DRIFT, CanaryWatch
from halide_autotune.devices.timing.measure import device_failure
from halide_autotune.devices.timing.measurement import MeasureFailure, Measurement
from halide_autotune.targets.process.stop_signal import StopSignal

_BASELINE_CANARIES = 3
_COOL_DOWN_POLL_S = 1.0
_COOL_DOWN_LIMIT_S = 300.0


class DeviceSpeed:
    """What is known of one device's speed; nothing of one without a canary, whose times all count.

    Args:
        device: its name, for messages.
    """

    def __init__(self, device: str) -> None:
        self._device = device
        self._watch: CanaryWatch | None = None
        self._drifted = False

    def forget(self) -> None:
        """The device has started anew, or has another speed for good."""
        self._watch = None

    def begin(self, canary: Callable[[], float]) -> None:
        """Take the usual speed, unless it is known; `canary` gives its seconds."""
        if self._watch is None:
            self._watch = CanaryWatch([canary() for _ in range(_BASELINE_CANARIES)])
            self._drifted = False

    def judged(self, result: Measurement | MeasureFailure) -> Measurement | MeasureFailure:
        """The result; or why it does not count: the device was not at its usual speed."""
        if self._watch is None or not isinstance(result, Measurement):
            return result
        if self._watch.is_usual(result.canary_s, is_paired=result.beside is not None):
            return result
        self._drifted = True
        drift = self._watch.drift(result.canary_s)
        trouble = DeviceTrouble(
            TroubleKind.DRIFTED,
            f"{self._device} computed {abs(drift):.0%} {'slower' if drift > 0 else 'faster'} than at the start"
            " while this schedule was timed, so its time does not count.",
        )
        return device_failure(result.kernel, self._device, trouble, under_way=False)

    def cool_down(self, canary: Callable[[], float], stop: StopSignal, *, is_paired: bool) -> DeviceTrouble | None:
        """After a drift, wait until the device is back at its usual speed, as far as what comes next needs it.

        Returns:
            Trouble if it does not come back; its speed is then forgotten.
        """
        if not self._drifted or self._watch is None:
            return None
        until_s = time.monotonic() + _COOL_DOWN_LIMIT_S
        while not self._watch.is_usual([canary()], is_paired=is_paired):
            if time.monotonic() > until_s or stop.wait(_COOL_DOWN_POLL_S):
                self.forget()
                far = f"a factor of {LARGEST_CHANGE:g}" if is_paired else f"{LARGEST_DRIFT:.0%}"
                return DeviceTrouble(
                    TroubleKind.DRIFTED,
                    f"{self._device} has stayed more than {far} off its usual speed for {_COOL_DOWN_LIMIT_S:.0f} s.",
                    next_step="Check its temperature, and what else runs on it.",
                )
        self._drifted = False
        return None
