"""NVIDIA's assembler and device code: kernels that a card cannot run are found before they are sent to one.

Imports `targets.profile`, `targets.generator` and `targets.process`.
"""
