"""One run from a request to a result: set-up, rounds, recovery.

Imports every other stage but `autotune_loop.shipping` and `.report`.
"""
