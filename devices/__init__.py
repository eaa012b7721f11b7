"""Devices: where executables run and how they are timed.

The modules at the top are the records and protocols that the rooms share; they import `targets` alone.
"""
