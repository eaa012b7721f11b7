"""What a run keeps: its folder, its database, samples and features in Halide's formats.

Imports `autotune_loop.schedule` and the records at the top of `autotune_loop`.
"""
