"""The checks of `sdk doctor` and `sdk devices check`.

May import `sdk.select` and `sdk.inventory`, and what lies below them.
"""
