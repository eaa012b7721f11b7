"""The process in which TensorFlow Lite computes a file: `python reference_worker.py MODEL KERNELS FOLDER`.

Strangers' files may end it, so it is one of its own, and imports nothing of ours. FOLDER has `inputs.npz`: the model's
inputs, `input 0` and so on, and in `wanted` the places of the tensors that are asked for. They come into `tensors.npz`,
by their places; or what TensorFlow Lite says against the file into `reason.txt`.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Compute the file once."""
    model, kernels, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    import numpy
    import tensorflow as tf

    with numpy.load(folder / "inputs.npz", allow_pickle=False) as file:
        given = dict(file)
    wanted = given.pop("wanted").tolist()
    try:
        interpreter = tf.lite.Interpreter(
            model,
            experimental_op_resolver_type=tf.lite.experimental.OpResolverType[kernels],
            experimental_preserve_all_tensors=True,
        )
        interpreter.allocate_tensors()
        for number, detail in enumerate(interpreter.get_input_details()):
            interpreter.set_tensor(detail["index"], given[f"input {number}"].reshape(detail["shape"]))
        interpreter.invoke()
        numpy.savez(folder / "tensors.npz", **{str(place): interpreter.get_tensor(place) for place in wanted})
    except (LookupError, RuntimeError, ValueError) as error:
        (folder / "reason.txt").write_text(" ".join(str(error).split()))
        raise


if __name__ == "__main__":
    main()
