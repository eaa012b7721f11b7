"""`sdk autotune`: the command, its `--replay`, and what it suggests after a run.

May import what `sdk.commands` may.
"""
