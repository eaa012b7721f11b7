"""Times on devices: schedules handed to devices, failures of devices told from failures of schedules, one scale.

Imports `autotune_loop.execute`, `.store` and `.specification`.
"""
