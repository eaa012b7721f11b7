"""Halide's learned cost model in TensorFlow: prediction, training, ranking scores, a process of its own."""
