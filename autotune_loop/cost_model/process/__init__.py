"""The process that TensorFlow runs in, and the lines that it is spoken to with.

Imports `autotune_loop.cost_model` and `.store`.
"""
