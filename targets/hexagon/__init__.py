"""Qualcomm's Hexagon: its SDK and compiler, what runs its programs, and the C shims for Halide's runtimes.

Imports `targets.process`.
"""
