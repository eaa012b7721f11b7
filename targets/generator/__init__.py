"""GENERATOR as a user writes it, Python and C++ generators as programs, and single runs of them.

Imports `targets.process` and `targets.toolchain`.
"""
