"""What a run is asked to do, and what a worker needs to know of it.

Imports `autotune_loop.farm` and what lies below `autotune_loop`.
"""
