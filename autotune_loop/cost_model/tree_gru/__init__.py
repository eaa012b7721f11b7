"""A network that walks the loops of lowered schedules, after AutoTVM's TreeGRU. Imports `autotune_loop.lowered`."""
