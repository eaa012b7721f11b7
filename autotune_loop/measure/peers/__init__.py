"""What else computes a network on this machine, timed beside ours: TensorFlow and LiteRT, in a process of their own.

May import what `autotune_loop.measure` may.
"""
