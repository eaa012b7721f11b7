"""One kernel checked and timed over a transport: settings, measurement or failure.

Imports the records at the top of `devices`.
"""
