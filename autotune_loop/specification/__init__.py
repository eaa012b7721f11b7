"""The specification of a run, and its context on a machine.

Imports `autotune_loop.farm` and what lies below `autotune_loop`.
"""
