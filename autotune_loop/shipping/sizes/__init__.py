"""Whether a shipped schedule is right and fast at other sizes than it was tuned for.

Imports `autotune_loop.measure` and `autotune_loop.shipping`.
"""
