"""Qualcomm's Hexagon: its SDK, toolchain, simulator and device runner, and the C shims for Halide's runtimes.

Imports `targets.process`.
"""
