"""What a device is, what its sensors say, and whether it is as fast as it was; what is remembered of unhealthy ones.

Imports `devices.agent`, `devices.timing` and the modules at the top of `devices`.
"""
