"""Candidates: which schedules are sampled, which of them are built, and the batch they make.

Imports `autotune_loop.execute`, `.store` and `.specification`.
"""
