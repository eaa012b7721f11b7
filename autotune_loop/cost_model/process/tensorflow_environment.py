"""The environment of a process that imports TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping


def tensorflow_environment(environment: Mapping[str, str], threads: int) -> dict[str, str]:
    """Add TensorFlow's settings: quiet but for errors, no GPU, thread pools no wider than `threads`.

    The model is far too small for a GPU and would only take memory from the kernels that are measured there.
    """
    return dict(environment) | {
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "CUDA_VISIBLE_DEVICES": "-1",
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": str(threads),
    }
