"""TensorFlow Lite models: a file as plain values, its operators, and what they compute with."""
