"""The user's devices: finding the inventory, reaching its devices, telling what they are.

Imports `sdk.project` and `sdk.settings`.
"""
