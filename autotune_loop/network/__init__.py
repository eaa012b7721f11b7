"""Neural networks: from a model to its operators, and from these to what is tuned."""
