"""What a device is, what its sensors say, and whether it is as fast as it was.

Imports `devices.agent` and `devices.timing`.
"""
