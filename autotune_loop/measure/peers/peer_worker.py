"""The process in which others compute a network: `python -m … MODEL THREADS CORES`.

It receives the name of a peer and a number of repetitions on standard input, and sends the median in milliseconds to
standard output, as `multiprocessing` sends objects. First it sends why each peer cannot be timed, or None, by its name.
It ends when its standard input closes.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from halide_autotune.autotune_loop.cost_model.process.model_worker import limit_threads
from halide_autotune.autotune_loop.network.layer_check import random_inputs
from halide_autotune.autotune_loop.network.models import load_model, open_model

Call = Callable[[], object]
# By so many calls of each the faster way is chosen.
_TRIALS = 10


def prepared_peers(model: str, threads: int) -> tuple[dict[str, Call], dict[str, str]]:
    """What computes a model once, by the peers' names; and why a peer cannot, by its name."""
    if model.endswith(".tflite"):
        inputs = open_model(model).random_inputs()
        return _prepared({"LiteRT": partial(_litert, Path(model).read_bytes(), inputs, threads)})
    import keras
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    loaded = load_model(model)
    inputs = random_inputs(loaded)
    # TensorFlow takes fewer names than Keras.
    plain = keras.Model(loaded.inputs, loaded.outputs, name="model")
    signature = [tf.TensorSpec(each.shape, tf.float32) for each in inputs]

    @tf.function  # type: ignore[untyped-decorator]  # TensorFlow has no types
    def computed(*sources: Any) -> Any:
        return plain(list(sources), training=False)

    # XNNPACK leaves weights alone that are variables. TensorFlow packs constants once, and is slower with some.
    concrete = computed.get_concrete_function(*signature)
    frozen = convert_variables_to_constants_v2(concrete)
    # Called by itself a frozen function takes half a millisecond more.
    constant = tf.function(lambda *sources: frozen(*sources)).get_concrete_function(*signature)

    def litert() -> Call:
        content = tf.lite.TFLiteConverter.from_concrete_functions([frozen]).convert()
        return _litert(content, inputs, threads, is_converted=True)

    return _prepared({"TensorFlow": partial(_tensorflow, (constant, concrete), inputs), "LiteRT": litert})


def _prepared(peers: Mapping[str, Callable[[], Call]]) -> tuple[dict[str, Call], dict[str, str]]:
    calls: dict[str, Call] = {}
    failures: dict[str, str] = {}
    for name, prepare in peers.items():
        try:
            calls[name] = prepare()
            calls[name]()
        except Exception as error:  # whatever a converter makes of a model
            calls.pop(name, None)
            failures[name] = " ".join(str(error).split())[:300]
    return calls, failures


def median_ms(call: Call, repetitions: int) -> float:
    """Of one call."""
    times_s = []
    for _ in range(repetitions):
        begin_s = time.perf_counter()
        call()
        times_s.append(time.perf_counter() - begin_s)
    return statistics.median(times_s) * 1e3


def _tensorflow(functions: Sequence[Any], inputs: list[Any]) -> Call:
    """The fastest of some that compute the same."""
    import tensorflow as tf

    constants = [tf.constant(each) for each in inputs]

    def call_of(computed: Any) -> Call:
        return lambda: [each.numpy() for each in computed(*constants)]

    def warm_ms(call: Call) -> float:
        call()
        return median_ms(call, _TRIALS)

    return min(map(call_of, functions), key=warm_ms)


def _litert(content: bytes, inputs: list[Any], threads: int, is_converted: bool = False) -> Call:
    import tensorflow as tf

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it tells of a package that has the same interpreter
        interpreter = tf.lite.Interpreter(model_content=content, num_threads=threads)
    interpreter.allocate_tensors()
    details = interpreter.get_input_details()
    if is_converted:
        # Their names have the order that they were given in.
        details = sorted(details, key=lambda each: str(each["name"]))
    for detail, values in zip(details, inputs, strict=True):
        interpreter.set_tensor(detail["index"], values.reshape(detail["shape"]))
    return lambda: interpreter.invoke()


def main() -> None:
    """Serve until the standard input closes."""
    model, threads, cores = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    requests, answers = Connection(os.dup(0), writable=False), Connection(os.dup(1), readable=False)
    # What libraries print must not come between answers.
    os.dup2(2, 1)
    if cores:
        os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    limit_threads(threads)
    calls, failures = prepared_peers(model, threads)
    answers.send({**failures, **dict.fromkeys(calls)})
    while True:
        try:
            name, repetitions = requests.recv()
        except EOFError:
            return
        answers.send(median_ms(calls[name], repetitions))


if __name__ == "__main__":
    main()
