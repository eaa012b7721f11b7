"""The transport of a device behind a wire: the agent's session, shared by operations, with files sent once.

Imports every other room of `devices`.
"""
