"""Generators that are targets of a CMake project: what they are made from, as CMake's file API tells it.

Imports `targets.generator`, `targets.toolchain` and `targets.process`.
"""
