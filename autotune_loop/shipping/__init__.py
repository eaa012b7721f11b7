"""The folder of headers that a project commits: from runs, checked, with provenance.

Imports `autotune_loop.store`, `.play_off`, `.measure`, `.schedule` and `.specification`.
"""
