"""The arrays that kernels are called with, as the runner reads them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from devices.timing.measure_settings import KernelInputs


@contextmanager
def prepared_inputs(inputs: KernelInputs) -> Iterator[KernelInputs]:
    """Yield the inputs with their `.npy` files and pictures as the runner reads them.

    Raises:
        UsageError: such a file cannot be read.
    """
    from targets.build.array_source import ARRAY_SUFFIXES
    from targets.build.runner_input_file import convert_array_file

    with tempfile.TemporaryDirectory(prefix="sdk-inputs-") as folder:
        files = dict(inputs.files)
        for name, file in inputs.files.items():
            if file.suffix.lower() in ARRAY_SUFFIXES:
                files[name] = Path(folder) / f"{name}.raw"
                convert_array_file(file, files[name])
        yield replace(inputs, files=files)
