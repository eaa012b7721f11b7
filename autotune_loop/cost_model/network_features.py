"""Reading the features of a schedule for one network, and saying so when they are of the other."""

from __future__ import annotations

from pathlib import Path

from autotune_loop.store.featurization import Featurization, read_featurization
from targets.errors import WeightsError
from weights.network import Network


def read_network_features(path: Path, network: Network) -> Featurization:
    """Read a `.featurization` file made for this network.

    Raises:
        WeightsError: the file is missing or damaged, or was made for another network.
    """
    try:
        return read_featurization(path, network)
    except WeightsError:
        other = next((other for other in Network if other is not network and _holds(path, other)), None)
        if other is None:
            raise
    raise WeightsError(
        f"The featurization {path} is of {other}, but the weights in use are for {network}.",
        next_step=f"Search with {network}, or name weights of {other}.",
    )


def _holds(path: Path, network: Network) -> bool:
    try:
        read_featurization(path, network)
    except WeightsError:
        return False
    return True
