"""The public Python API: a module for each function of `sdk`, which the commands call, too.

May import everything of `sdk` but `sdk.main` and `sdk.commands`.
"""
