"""What is suggested without timing anything."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Suggestion:
    """A schedule that nobody has timed.

    Attributes:
        header: the text of a `.schedule.h`.
        made_by: the name of the starting schedule, then the moves that changed it.
        expected_ratio: the time that is expected of it, over that of the first suggestion.
    """

    header: str
    made_by: tuple[str, ...]
    expected_ratio: float


@dataclass(frozen=True)
class Suggestions:
    """What is suggested for a pipeline.

    Attributes:
        function_name: in the headers: the pipeline's, without namespaces.
        first: the schedules to try, the most promising first; at least one.
        compared: how many schedules were lowered and compared.
        refused: how many Halide has refused.
        cores: that they are suggested for.
    """

    function_name: str
    first: tuple[Suggestion, ...]
    compared: int
    refused: int
    cores: int
