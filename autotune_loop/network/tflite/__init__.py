"""TensorFlow Lite models: a file as plain values, its operators, what they compute with, and what is right."""
