"""The Python API of `sdk network`.

May import what `sdk.api` may.
"""
