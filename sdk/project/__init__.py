"""A project: its `sdk.toml`, its run folders, and the tools that build its generators.

May import `sdk.display`, `sdk.settings` and `sdk.output`.
"""
