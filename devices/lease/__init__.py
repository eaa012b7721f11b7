"""Leases of devices: taken and renewed through the agent, and the tokens of leases taken by hand.

Imports `devices.agent` and the modules at the top of `devices`.
"""
