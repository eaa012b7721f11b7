"""`sdk farm` and its commands.

Imports as `sdk.commands`.
"""
