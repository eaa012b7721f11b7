"""Why a schedule is fast: where its time goes, what its loops load, store and compute again, and what limits it now.

Imports `autotune_loop.measure`.
"""
