"""The wire of devices behind ADB: TCP and USB, keys, packets, streams and files.

Imports the records at the top of `devices`.
"""
