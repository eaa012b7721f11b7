"""A schedule that is being changed: one form for every schedule, in which a change of a loop reaches all that names it.

Imports `schedule`, and `targets` for the shape of a pipeline.
"""
