"""The arrays that kernels are called with, as the runner reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from halide_autotune.devices.timing.measure_settings import KernelInputs
from halide_autotune.targets.process.scratch_folder import scratch_folder


@contextmanager
def prepared_inputs(inputs: KernelInputs) -> Iterator[KernelInputs]:
    """Yield the inputs with their files as the runner reads them.

    Raises:
        UsageError: such a file cannot be read.
    """
    from halide_autotune.targets.build.array_source import is_array_file
    from halide_autotune.targets.build.runner_input_file import array_shape, convert_array_file

    with scratch_folder("inputs") as folder:
        files = dict(inputs.files)
        for name, file in inputs.files.items():
            if is_array_file(file):
                files[name] = folder / f"{name}.raw"
                convert_array_file(file, files[name])
            else:
                array_shape(file)  # fails here, and not on a device, if it is no file of the runner
        yield replace(inputs, files=files)
