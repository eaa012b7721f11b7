"""Generator parameters that a run tunes: their values, what restricts them, and a model of the time of a set of them.

Imports nothing else of `autotune_loop`.
"""
