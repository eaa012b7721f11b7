"""This machine as a device, natively or under QEMU, and which of its cores build and which measure.

Imports the records at the top of `devices`.
"""
