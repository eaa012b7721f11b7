"""What a run publishes: the play-off over all sizes, and those at single sizes.

Imports `autotune_loop.play_off` and the states of `autotune_loop.run`.
"""
