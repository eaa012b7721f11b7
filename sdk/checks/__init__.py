"""What `sdk doctor` and `sdk devices check` look at.

Imports `sdk.select` and `sdk.inventory`.
"""
