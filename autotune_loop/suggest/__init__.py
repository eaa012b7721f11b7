"""Schedules without a device: starting schedules and their children, in the order that other pipelines teach.

Imports `autotune_loop.search`.
"""
