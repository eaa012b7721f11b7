"""The C toolchain of each target (zig, Android's NDK, Qualcomm's), and this machine's C++ compiler.

Imports `targets.profile`, `targets.hexagon` and `targets.process`.
"""
