"""Devices: where executables run and how they are timed."""
