"""The commands of `sdk devices`.

May import what `sdk.commands` may.
"""
