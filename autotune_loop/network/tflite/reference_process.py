"""What TensorFlow Lite makes of a file, computed in a process of its own: a damaged file may end that one alone."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halide_autotune.targets.errors import NetworkError, os_error_as
from halide_autotune.targets.process.limited_process import ProcessLimits, ProcessOutcome, run_limited
from halide_autotune.targets.process.scratch_folder import scratch_folder
from halide_autotune.targets.values.texts import printable

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

_WORKER = Path(__file__).with_name("reference_worker.py")
# The reference kernels take seconds for a billion products.
_LIMITS = ProcessLimits(time_s=3600.0, memory_bytes=16 * 2**30)
_LONGEST_LINE_CHARACTERS = 300


class Kernels(StrEnum):
    """Which of TensorFlow Lite's kernels compute, by its own names."""

    REFERENCE = "BUILTIN_REF"
    OPTIMISED = "BUILTIN_WITHOUT_DEFAULT_DELEGATES"


def reference_tensors(
    path: Path, kernels: Kernels, inputs: Sequence[Array], wanted: Mapping[int, int]
) -> dict[int, Array]:
    """Tensors of a `.tflite` file for inputs, by their places in it.

    Args:
        inputs: one for each input of the file.
        wanted: how many numbers each tensor has, by its place.

    Raises:
        NetworkError: TensorFlow Lite cannot compute it, or ends while it does.
    """
    import numpy

    with (
        os_error_as(NetworkError, f"{path} cannot be given to TensorFlow Lite"),
        scratch_folder("reference") as folder,
    ):
        given: dict[str, Any] = {f"input {number}": values for number, values in enumerate(inputs)}
        numpy.savez(folder / "inputs.npz", **given, wanted=numpy.array(list(wanted), numpy.int64))
        words = [sys.executable, "-P", str(_WORKER), str(path.absolute()), kernels.value, str(folder)]
        outcome = run_limited(words, _LIMITS)
        if not outcome.succeeded:
            raise _failure(path, outcome, folder / "reason.txt")
        try:
            with numpy.load(folder / "tensors.npz", allow_pickle=False) as file:
                found = {place: file[str(place)] for place in wanted}
        except (EOFError, LookupError, ValueError, zipfile.BadZipFile) as error:
            raise NetworkError(f"What TensorFlow Lite made of {path} cannot be read: {error}.") from error
    if any(found[place].size != size for place, size in wanted.items()):
        raise NetworkError(f"TensorFlow Lite makes tensors of other shapes of {path} than it tells of.")
    return found


def _failure(path: Path, outcome: ProcessOutcome, reason: Path) -> NetworkError:
    if reason.is_file():
        said = printable(reason.read_text(errors="replace"))[:_LONGEST_LINE_CHARACTERS]
        return NetworkError(f"TensorFlow Lite cannot compute {path}: {said}.")
    lines = [line for line in outcome.log.splitlines() if line.strip()]
    told = f": {printable(lines[-1])[:_LONGEST_LINE_CHARACTERS]}" if lines and outcome.exit_code > 0 else "."
    return NetworkError(
        f"TensorFlow Lite's process {outcome.describe()} while it computed {path}{told}",
        next_step="Convert the model again: it may be damaged, or have scales that no kernel can compute with.",
    )
