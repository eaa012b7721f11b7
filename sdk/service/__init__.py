"""What long commands need: a farm's worker, the report's server, interrupts, logs and crash reports.

May import `sdk.inventory`, and what lies below it.
"""
