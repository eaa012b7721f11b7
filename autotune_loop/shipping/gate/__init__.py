"""`sdk check`: whether committed headers still fit their generators, are right, and are as fast as they say."""
