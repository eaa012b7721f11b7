"""From what Halide keeps of a pipeline's schedule to data: schedules that somebody wrote by hand.

Imports the modules of `autotune_loop.schedule`.
"""
