"""The time of a run: its budget, what there is still time for, and its end.

Imports `autotune_loop.play_off`.
"""
