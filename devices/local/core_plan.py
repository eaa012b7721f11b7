"""Which cores of this machine build and which measure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CorePlan:
    """The cores of this machine, divided.

    Attributes:
        build: cores that compile and train.
        measure: cores that a kernel on this machine is timed on; empty when none is.
    """

    build: frozenset[int]
    measure: frozenset[int]

    @property
    def take_turns(self) -> bool:
        """Whether building and measuring must exclude each other in time."""
        return bool(self.build & self.measure)


def plan_cores(usable: frozenset[int], measure_threads: int) -> CorePlan:
    """Divide `usable` so that measuring has the cores it needs and building the others.

    Args:
        measure_threads: threads of a kernel timed on this machine; 0 when the device is elsewhere.

    On a machine too small for both, all cores do both, in turns.
    """
    if measure_threads == 0:
        return CorePlan(usable, frozenset())
    if measure_threads >= len(usable):
        return CorePlan(usable, usable)
    # The first cores take most interrupts and other people's work: measure on the last ones.
    measure = frozenset(sorted(usable)[-measure_threads:])
    return CorePlan(usable - measure, measure)
