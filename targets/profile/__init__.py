"""Target profiles: the record, its TOML files and their loader, Halide targets, this machine's probe, NVIDIA cards.

Imports `targets.process` and `targets.halide_install`.
"""
