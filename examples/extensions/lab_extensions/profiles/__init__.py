"""Target profiles, each in a file of its name."""
