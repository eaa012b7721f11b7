"""From a network, its weights and its compiled operators to a static library with one C entry, and a benchmark of it.

May import what `autotune_loop.network` may.
"""
