"""Telling a program or a webhook of the user's how a run has ended.

Imports what prints results, and nothing of the loop but its results and events.
"""
