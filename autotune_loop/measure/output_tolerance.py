"""How far a schedule's output may be from the reference's."""

from __future__ import annotations

from autotune_loop.store.featurization import Featurization, uses_float
from devices.timing.measure_settings import Tolerance

# Schedules contract and reorder float arithmetic differently: an integer made from floats may be off by one, an index
# into a table made from floats may be the next one (Halide's local_laplacian: 3e-4 of the elements, by up to 1 % of
# the largest; none when all is compiled with strict_float), and a threshold may fall the other way in a few places.
# Integer arithmetic is exact.
_FLOAT_TOLERANCE = Tolerance(integer=1, mismatch_share=1e-3, far_scale=0.02, far_share=2e-5)
_EXACT = Tolerance()


def output_tolerance(features: Featurization) -> Tolerance:
    """Exact for a pipeline without float operations."""
    return _FLOAT_TOLERANCE if uses_float(features) else _EXACT
