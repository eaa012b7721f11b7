"""Schedules and how a generator takes one: headers, plug-ins, Halide's autoschedulers by name.

Imports `targets.generator`, `targets.profile` and `targets.toolchain`.
"""
