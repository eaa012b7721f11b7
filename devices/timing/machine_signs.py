"""What else a machine does while a kernel is timed on it, and who else computes there, as the runner reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from halide_autotune.devices.timing.report import read_event
from halide_autotune.targets.values.checks import any_text, number, true_or_false, whole_number
from halide_autotune.targets.values.texts import printable

# A core that computes at less of its highest frequency than this, on a machine that is this hot, is slowed by heat.
SLOW_SHARE, HOT_C = 0.9, 80.0
# Others disturb if they had more than this share of the cores.
OTHERS_SHARE = 0.10

_MOST_CORES = 2**16
_LONGEST_NAME_CHARACTERS = 32
_seconds = number(0.0, 1e9)
_hz = number(1.0, 1e12)


def _name(value: object) -> str:
    """A process may call itself anything."""
    return printable(any_text(value))[:_LONGEST_NAME_CHARACTERS]


@dataclass(frozen=True)
class MachineSigns:
    """What a machine did for a while. Seconds are sums over the cores that kernels may use; None is unknown.

    Attributes:
        duration_s: how long.
        cores: that kernels may use; 0 if unknown.
        busy_s: in which a core computed, for whoever.
        own_s: the part of that which was our own.
        stolen_s: in which a hypervisor gave a core to another machine though it had work to do.
        waiting_s: of the duration, in which a task waited for a core.
        hz, max_hz: the frequency at the end, and the highest one.
        hottest_c: the hottest thermometer; nobody looks while the frequency is high.
        has_priority: no ordinary process could take a core away meanwhile.
    """

    duration_s: Annotated[float, _seconds]
    cores: Annotated[int, whole_number(0, _MOST_CORES)]
    busy_s: Annotated[float | None, _seconds]
    own_s: Annotated[float, _seconds]
    stolen_s: Annotated[float | None, _seconds]
    waiting_s: Annotated[float | None, _seconds]
    hz: Annotated[float | None, _hz]
    max_hz: Annotated[float | None, _hz]
    hottest_c: Annotated[float | None, number(-100.0, 200.0)]
    has_priority: Annotated[bool, true_or_false] = False

    @property
    def others_share(self) -> float:
        """Of the cores' time, what others had; 0 if unknown."""
        available_s = self.cores * self.duration_s
        others_s = max(0.0, (self.busy_s or 0.0) - self.own_s)
        return min(1.0, others_s / available_s) if available_s > 0 else 0.0

    @property
    def is_shared(self) -> bool:
        """Whether others had much of the cores, and could take them away."""
        return self.others_share > OTHERS_SHARE and not self.has_priority

    @property
    def stolen_share(self) -> float:
        """Of the time for which there was work, what a hypervisor took; 0 if unknown."""
        stolen_s = self.stolen_s or 0.0
        wanted_s = stolen_s + (self.busy_s or 0.0)
        return stolen_s / wanted_s if wanted_s > 0 else 0.0

    @property
    def waiting_share(self) -> float:
        """Of the duration, in which a task waited for a core; 0 if unknown."""
        return min(1.0, (self.waiting_s or 0.0) / self.duration_s) if self.duration_s > 0 else 0.0

    @property
    def is_slowed_by_heat(self) -> bool:
        """Whether the frequency was low at the end, and the machine hot."""
        if self.hz is None or self.max_hz is None or self.hottest_c is None:
            return False
        return self.hz < SLOW_SHARE * self.max_hz and self.hottest_c >= HOT_C


def together(signs: Sequence[MachineSigns]) -> MachineSigns:
    """The sums of several times, and what was so at the end of the last; there is at least one."""

    def total(values: list[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return sum(known) if known else None

    last = signs[-1]
    return MachineSigns(
        duration_s=sum(one.duration_s for one in signs),
        cores=last.cores,
        busy_s=total([one.busy_s for one in signs]),
        own_s=sum(one.own_s for one in signs),
        stolen_s=total([one.stolen_s for one in signs]),
        waiting_s=total([one.waiting_s for one in signs]),
        hz=last.hz,
        max_hz=last.max_hz,
        hottest_c=last.hottest_c,
        has_priority=all(one.has_priority for one in signs),
    )


@dataclass(frozen=True)
class BusyProcess:
    """A process that computes on the cores that kernels may use, and is none of ours.

    Attributes:
        is_own_users: it belongs to the user that kernels run as.
        busy_s: processor seconds that it had.
    """

    pid: Annotated[int, whole_number(1, 2**31 - 1)]
    name: Annotated[str, _name]
    is_own_users: Annotated[bool, true_or_false]
    busy_s: Annotated[float, _seconds]


@dataclass(frozen=True)
class Surroundings:
    """A look at a machine on which nothing of ours is timed.

    Attributes:
        busiest: the process that computes most; None if none does, or none can be seen.
    """

    signs: MachineSigns
    busiest: BusyProcess | None


def read_signs(events: Sequence[Mapping[str, object]]) -> MachineSigns | None:
    """The signs in a runner's report, which is not to be trusted; None if there are none that make sense."""
    return read_event("machine", MachineSigns, events)


def read_surroundings(events: Sequence[Mapping[str, object]]) -> Surroundings | None:
    """The surroundings in a runner's report, which is not to be trusted; None if there are none that make sense."""
    signs = read_signs(events)
    return None if signs is None else Surroundings(signs, read_event("busiest", BusyProcess, events))
