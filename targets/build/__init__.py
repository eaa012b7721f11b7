"""From object files to an executable with its runner and Halide's runtime, and the simulated clock of emulators.

Imports every other room of `targets`.
"""
