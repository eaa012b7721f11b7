"""What runs for long: a farm's worker, the report's server; interrupts, logs and crash reports.

Imports `sdk.inventory` and `sdk.settings`.
"""
