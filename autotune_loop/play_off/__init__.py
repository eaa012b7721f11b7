"""Who wins, from times taken in turns: the test, its course, its budget, and play-offs of runs and of headers.

Imports `autotune_loop.measure` and what lies below it.
"""
