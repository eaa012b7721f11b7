"""One extension of each kind."""
