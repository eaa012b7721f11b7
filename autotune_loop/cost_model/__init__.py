"""Halide's cost models, and training them on what was measured.

Imports `autotune_loop.store`; TensorFlow only inside the process that trains.
"""
