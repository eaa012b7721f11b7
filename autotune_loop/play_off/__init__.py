"""Play-offs decide who wins: the test, its course, its time, and play-offs of runs and of headers.

Imports `autotune_loop.measure` and what lies below it.
"""
