"""Options: declared once, checked, and turned into what the API takes.

Imports `sdk.select`, `sdk.inventory` and `sdk.project`.
"""
