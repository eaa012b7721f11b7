"""One thin file per command; each has `register(application)`, which `sdk.main` calls."""
