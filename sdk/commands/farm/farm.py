"""`sdk farm`: many hosts with their devices, and many users, on one Dask cluster."""

from __future__ import annotations

import typer

from halide_autotune.sdk.commands.farm.certificates import certificates
from halide_autotune.sdk.commands.farm.revoke import revoke
from halide_autotune.sdk.commands.farm.serve import scheduler, worker
from halide_autotune.sdk.commands.farm.status import status

group = typer.Typer(
    name="farm",
    help="Share devices and cores between hosts and users: certificates, scheduler, worker, status."
    "\n\nExample: sdk farm status",
)
for command in (certificates, revoke, scheduler, worker, status):
    group.command()(command)
