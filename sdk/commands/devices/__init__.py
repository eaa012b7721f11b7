"""`sdk devices` and its commands.

Imports as `sdk.commands`.
"""
