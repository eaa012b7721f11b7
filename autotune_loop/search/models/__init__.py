"""Models that say which of many proposed schedules to time, and what a run knows that they learn from.

Imports `draft` and `lowered`, but no technique, no executor and no store.
"""
