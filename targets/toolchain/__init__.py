"""C toolchains of the targets (zig, Android's NDK, Hexagon's) and the C++ compiler of this machine.

Imports `targets.profile`, `targets.hexagon` and `targets.process`.
"""
