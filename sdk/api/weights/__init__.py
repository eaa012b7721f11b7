"""Weights from Python: trained on runs of one's own, or on random programs.

May import what `sdk.api` may.
"""
