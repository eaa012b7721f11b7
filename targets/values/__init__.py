"""Values of TOML and JSON files: checked one by one, and read into frozen dataclasses.

It serves every reader of a file, a message or a record; it knows none of them, and imports `targets.errors` alone.
"""
