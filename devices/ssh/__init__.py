"""The wire of devices behind SSH: routes, host keys, logging in, connections and files, over paramiko.

Imports `devices.inventory` and the records at the top of `devices`.
"""
