"""A recorded run read again: its page, its figures, and other options tried on it.

Imports `autotune_loop.store`, `.cost_model`, `.search` and `.schedule`.
"""
