"""The operators of networks as generators: Halide's own process runs each file, and nothing here imports them."""
