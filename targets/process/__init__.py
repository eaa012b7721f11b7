"""Child processes with limits, files that appear whole, a content-addressed cache, the signal to stop.

Imports nothing of ours but `targets.errors`.
"""
