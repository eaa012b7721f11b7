"""Changes of a draft, small and whole: each gives another draft that Halide will most likely take.

Imports `draft` and `schedule`.
"""
