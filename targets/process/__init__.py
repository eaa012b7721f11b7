"""Child processes with limits, compiler runs, atomic file writes, a content-addressed cache and the stop signal.

Imports nothing of ours but `targets.errors`.
"""
