"""Halide's weights: the file format, and the weights built into the plug-ins."""
