"""`sdk weights` and its commands.

Imports as `sdk.commands`.
"""
