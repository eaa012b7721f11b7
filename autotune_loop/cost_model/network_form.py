"""What sets Halide's two cost-model networks apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from autotune_loop.cost_model.adams2019_terms import fill_adams2019_terms
from autotune_loop.cost_model.anderson2021_terms import fill_anderson2021_terms
from autotune_loop.cost_model.terms import FloatArray
from weights.network import Network


@dataclass(frozen=True)
class NetworkForm:
    """One network; its layers, its loss and its training are those of the other.

    Attributes:
        schedule_feature_count: features that describe the schedule of one stage.
        negative_slope: what the activation multiplies values below zero by; 0 is a relu.
        fill_terms: fills in the amounts of work B: features (count, ..., stages), terms (32, ..., stages) of
            zeros, number of cores.
    """

    schedule_feature_count: int
    negative_slope: float
    fill_terms: Callable[[FloatArray, FloatArray, int], None]


def network_form(network: Network) -> NetworkForm:
    """The form of a network."""
    return _FORMS[network]


_FORMS = {
    Network.ADAMS2019: NetworkForm(Network.ADAMS2019.schedule_feature_count, 0.0, fill_adams2019_terms),
    Network.ANDERSON2021: NetworkForm(Network.ANDERSON2021.schedule_feature_count, 1e-10, fill_anderson2021_terms),
}
