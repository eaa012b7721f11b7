"""The commands of `sdk network`.

May import what `sdk.commands` may.
"""
