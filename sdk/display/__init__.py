"""What a person or a machine sees of a run: a live view, plain lines, JSON lines, or the result alone."""
