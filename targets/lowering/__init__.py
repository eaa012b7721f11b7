"""What Halide makes of a schedule before it generates code: the loop nest, at the pipeline's estimates."""
