"""The schedules that a generator can be built with: headers, the SDK's plug-ins, Halide's autoschedulers.

Imports `targets.generator`, `targets.profile` and `targets.toolchain`.
"""
