"""What earlier runs found, as a run begins with it."""
