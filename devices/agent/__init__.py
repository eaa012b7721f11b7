"""The agent, a C program on remote devices: how it is built, its protocol, and a session with it.

Imports the modules at the top of `devices`.
"""
