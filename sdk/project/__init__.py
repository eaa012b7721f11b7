"""A project: its `sdk.toml`, its run folders, what building its generators needs.

Imports `sdk.settings`.
"""
