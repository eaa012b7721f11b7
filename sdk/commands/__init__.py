"""The commands, a thin file each: parse, call, print.

Imports every other room of `sdk`.
"""
