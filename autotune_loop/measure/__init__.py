"""Timing schedules on devices: hands them out, tells devices' failures from schedules', brings times to one scale.

Imports `autotune_loop.execute`, `.store` and `.specification`.
"""
