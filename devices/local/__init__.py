"""This machine as a device, natively or emulated, and which of its cores build and which measure.

Imports the modules at the top of `devices`.
"""
