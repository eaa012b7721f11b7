"""Leases of devices: taken and kept through the agent, or by hand with a token.

Imports `devices.agent`.
"""
