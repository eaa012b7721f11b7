"""What is done in a slot of a worker: search, generate code, link, measure.

Imports the other modules of `execute` that a worker's state is made of, and no executor.
"""
