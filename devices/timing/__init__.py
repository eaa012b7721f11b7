"""One kernel checked and timed over a transport: the settings, and a measurement or a failure.

Imports the modules at the top of `devices`.
"""
