"""A recorded run as a page to look at."""
