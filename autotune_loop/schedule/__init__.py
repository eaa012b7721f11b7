"""Schedules as data: parsed from headers, checked, printed as C++, Python and loops.

Imports nothing else of `autotune_loop`.
"""
