"""`devices.toml`: the devices that there are, read, checked and edited.

Imports the records at the top of `devices`.
"""
