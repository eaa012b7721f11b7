"""Ways of proposing schedules as data, and how a batch is divided between them.

Imports `search.models`, `sketches`, `moves` and `draft`, but no executor and no store.
"""
