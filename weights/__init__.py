"""Halide's weights: the file format, their arithmetic, those inside the plug-ins, and those kept by name with lineage.

Imports `targets`.
"""
