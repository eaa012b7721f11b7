"""NVIDIA's assembler and compiled kernels: find those that a card cannot run before one gets them.

Imports `targets.profile`, `targets.generator` and `targets.process`.
"""
