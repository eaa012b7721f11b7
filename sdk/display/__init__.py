"""What is shown of a run while it goes on and at its end.

Imports `sdk.output`.
"""
