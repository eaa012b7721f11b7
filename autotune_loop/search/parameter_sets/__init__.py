"""Batches of parameter sets, where the numbers of a generator's own schedule are tuned."""
