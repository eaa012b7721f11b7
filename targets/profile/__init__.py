"""Target profiles: records, TOML files and their loader; Halide targets, NVIDIA cards, and the probe of this machine.

Imports `targets.values` and `targets.halide_install`.
"""
