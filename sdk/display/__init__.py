"""What users see of a run, while it is under way and when it ends, and how numbers are written.

May import `sdk.output` and `sdk.settings`.
"""
