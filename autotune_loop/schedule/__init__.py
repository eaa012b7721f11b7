"""Schedules as data: parsed from headers, read from pipelines, checked, printed as C++, Python, loops and JSON.

Imports nothing else of `autotune_loop`.
"""
