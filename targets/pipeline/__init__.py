"""A generator's pipeline before it is scheduled: its arguments, their sizes, and the schedule that it comes with.

Imports `targets.generator` and `targets.toolchain`.
"""
