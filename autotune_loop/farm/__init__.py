"""A farm of hosts, devices and users: addresses, certificates, fair shares, its scheduler and its state.

Imports nothing else of `autotune_loop`.
"""
