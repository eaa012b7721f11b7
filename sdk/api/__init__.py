"""The Python API, a call a file.

Imports every other room of `sdk` but `sdk.commands`.
"""
