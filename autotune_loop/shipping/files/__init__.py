"""The files of a shipped schedule: C++ headers, Python modules, guards, and the look at the pipeline they begin with.

Imports `autotune_loop.schedule`.
"""
