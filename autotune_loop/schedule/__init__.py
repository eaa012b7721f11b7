"""A schedule as data: parsed from a schedule header, printed as C++, Python, JSON or loops."""
