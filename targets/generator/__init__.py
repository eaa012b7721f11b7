"""From GENERATOR, as a user writes it, to a program that runs: Python and C++ generators, and one run of either.

Imports `targets.process` and `targets.toolchain`.
"""
