"""The tuning loop: candidates, search, cost models, rounds."""
