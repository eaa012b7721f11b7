"""Executables of kernels with their runner and Halide's runtime, what `sdk build` leaves, and QEMU's simulated clock.

Imports every other room of `targets`.
"""
