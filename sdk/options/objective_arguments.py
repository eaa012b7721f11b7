"""--objective, --device-weight and --worst-tolerance."""

from __future__ import annotations

import math
from collections.abc import Sequence

from autotune_loop.specification.objective import Objective, ObjectiveKind
from targets.errors import UsageError


def parse_objective(
    objective: str | None, device_weights: Sequence[str] = (), worst_tolerance: float = Objective.worst_tolerance
) -> Objective:
    """What the winner is to be good at.

    Args:
        objective: mean, worst or weighted; None is weighted where there are weights, else mean.
        device_weights: each NAME=NUMBER.

    Raises:
        UsageError: one message about the first value that is wrong.
    """
    kinds = [kind.value for kind in ObjectiveKind]
    name = objective or ("weighted" if device_weights else "mean")
    if name not in kinds:
        raise UsageError(f"--objective must be {', '.join(kinds[:-1])} or {kinds[-1]}, not {name!r}.")
    kind = ObjectiveKind(name)
    if device_weights and kind is not ObjectiveKind.WEIGHTED:
        raise UsageError(f"--device-weight goes with --objective weighted, not {name}.")
    if not (math.isfinite(worst_tolerance) and 0 <= worst_tolerance < 1):
        raise UsageError(f"--worst-tolerance must be a share from 0 to below 1, not {worst_tolerance:g}.")
    weights: dict[str, float] = {}
    for text in device_weights:
        device, separator, number = text.rpartition("=")
        weight = _number(number)
        if not separator or not device or weight is None:
            raise UsageError(f"--device-weight {text!r} is not NAME=NUMBER, such as pi5=2.")
        if device in weights:
            raise UsageError(f"--device-weight names {device} twice.")
        weights[device] = weight
    return Objective(kind, weights, worst_tolerance)


def check_weighted_devices(objective: Objective, names: Sequence[str]) -> None:
    """Every device with a weight must be there.

    Raises:
        UsageError: one is not.
    """
    for device in objective.device_weights:
        if device not in names:
            raise UsageError(
                f"--device-weight names {device}, which is not timed on.", next_step=f"Here are: {', '.join(names)}."
            )


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value > 0 else None
