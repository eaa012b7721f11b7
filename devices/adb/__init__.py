"""The link to Android devices over ADB: TCP and USB, keys, packets, services and files.

Imports the modules at the top of `devices`.
"""
