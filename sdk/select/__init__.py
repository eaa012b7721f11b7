"""Turns the names that users give into devices, targets, clocks, weights and farms.

May import `sdk.inventory`, `sdk.project` and `sdk.display`, and what lies below them.
"""
