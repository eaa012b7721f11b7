"""Who ships: kernels timed in turns, and the test that decides between them."""
