"""`sdk farm`: many hosts with their devices, and many users, on one Dask cluster."""

from __future__ import annotations

import typer

from sdk.commands.farm import certificates as farm_certificates
from sdk.commands.farm import scheduler as farm_scheduler
from sdk.commands.farm import status as farm_status
from sdk.commands.farm import worker as farm_worker


def register(application: typer.Typer) -> None:
    """Add the commands to the application."""
    group = typer.Typer(
        help="Share devices and cores between hosts and users: certificates, scheduler, worker, status."
    )
    for module in (farm_certificates, farm_scheduler, farm_worker, farm_status):
        module.register(group)
    application.add_typer(group, name="farm")
