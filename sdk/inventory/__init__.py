"""Devices of the inventory: finding the file, connecting, asking for state, leasing by hand.

May import `sdk.project`, `sdk.display`, `sdk.settings` and `sdk.output`.
"""
