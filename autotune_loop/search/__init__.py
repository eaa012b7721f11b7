"""Candidates: sampling schedules, choosing which are built, and building a batch of them.

Imports `autotune_loop.execute`, `.store` and `.specification`.
"""
