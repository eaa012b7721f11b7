"""From names to devices, targets, clocks, weights and farms.

Imports `sdk.inventory`, `sdk.project` and `sdk.display`.
"""
