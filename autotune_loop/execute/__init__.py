"""Tasks and where they run: in this process or on a farm's workers, each with its device sessions.

Imports `autotune_loop.farm`, `.store`, `.schedule` and `.specification`.
"""
