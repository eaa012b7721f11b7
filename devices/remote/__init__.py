"""The transport of a device behind SSH or ADB: the agent's session, the lease, and files that are sent once.

Imports every other room of `devices` except `inventory`.
"""
