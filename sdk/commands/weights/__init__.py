"""The commands of `sdk weights`.

May import what `sdk.commands` may.
"""
