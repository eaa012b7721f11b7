"""`sdk farm`: many hosts with their devices, and many users, on one Dask cluster."""

from __future__ import annotations

import typer

from sdk.commands.farm.certificates import certificates
from sdk.commands.farm.scheduler import scheduler
from sdk.commands.farm.status import status
from sdk.commands.farm.worker import worker

group = typer.Typer(
    name="farm", help="Share devices and cores between hosts and users: certificates, scheduler, worker, status."
)
for command in (certificates, scheduler, worker, status):
    group.command()(command)
