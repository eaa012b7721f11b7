"""The failure of the process that TensorFlow lives in."""

from __future__ import annotations

from targets.errors import ToolchainError


class ModelProcessError(ToolchainError):
    """The cost-model process could not start, ended by itself, or did not answer in time.

    A run can go on without it: nothing measured is lost, only predictions and training are.
    """
