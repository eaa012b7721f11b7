"""Starting schedules made from nothing but a pipeline's shape, by the trade of those who write schedules by hand.

Imports `draft` and `schedule`, and `targets` for the shape of a pipeline.
"""
