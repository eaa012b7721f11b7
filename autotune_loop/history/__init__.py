"""The history: every schedule that a user's runs have timed, from which later runs of equal pipelines start."""
