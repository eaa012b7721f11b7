"""The agent, a C program on a device behind a wire: building it, its protocol, a session with it.

Imports the records at the top of `devices`.
"""
