"""Getting TensorFlow ready in a process, once."""

from __future__ import annotations

import numpy as np

from autotune_loop.cost_model.cost_model import CostModel
from autotune_loop.cost_model.fitting import fit
from autotune_loop.cost_model.network import PIPELINE_INPUTS, schedule_inputs
from autotune_loop.cost_model.pipeline_batch import PipelineBatch
from autotune_loop.cost_model.terms import TERM_COUNT
from autotune_loop.cost_model.training_options import TrainingOptions
from weights.weights_file import Weights


def limit_threads(threads: int) -> None:
    """Limit TensorFlow's own thread pools; must come before its first operation."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)


def warm_up(weights: Weights, num_cores: int) -> None:
    """Trace prediction and training with Halide's loss (about 1 s): the first real call is then fast."""
    stages, schedules = 2, 8
    batch = PipelineBatch(
        pipeline_id=1,
        schedule_sha256s=tuple(str(index) for index in range(schedules)),
        logs=np.ones((schedules, stages, schedule_inputs(weights.network)), dtype=np.float32),
        terms=np.ones((schedules, stages, TERM_COUNT), dtype=np.float32),
        pipeline_inputs=np.ones((stages, PIPELINE_INPUTS), dtype=np.float32),
        runtimes_ms=np.arange(1, schedules + 1, dtype=np.float32),
    )
    CostModel(weights, num_cores).predict_inputs(batch.logs, batch.terms, batch.pipeline_inputs)
    fit(weights, [batch], TrainingOptions(num_cores=num_cores, epochs=1))
