"""`sdk farm revoke`: certificates that a farm's scheduler lets in no more."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from halide_autotune.sdk.options.shared_options import JsonOption
from halide_autotune.sdk.output import make_console, plain_table, print_json
from halide_autotune.sdk.settings import read_settings
from halide_autotune.targets.values.records import plain


def revoke(
    certificates: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME|FILE...", help="Hosts or users, for all that was made for them; or a certificate's file."
        ),
    ],
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder", metavar="DIR", help="Folder of the authority. Default: the folder farm in your settings."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Revoke certificates, for example of a laptop that was lost: the scheduler refuses them from then on.

    It reads the list, revoked.pem in its own folder of certificates, within seconds and without a restart, and ends the
    connections of those who are in. `sdk farm certificates --host NAME --renew` (or --user NAME) makes a new one.

    Example: sdk farm revoke ana lab2
    """
    from halide_autotune.autotune_loop.farm.certificates.certificate_files import REVOKED_FILE
    from halide_autotune.autotune_loop.farm.certificates.revocation import revoke_certificates
    from halide_autotune.sdk.select.farm_choice import certificates_folder

    place = certificates_folder(folder, read_settings())
    found = revoke_certificates(place, certificates)
    if as_json:
        revoked = [{**plain(one), "expires": one.expires.isoformat()} for one in found]
        print_json({"list": str(place / REVOKED_FILE), "certificates": revoked})
        return
    table = plain_table("certificate", "of", "serial number", "revoked")
    for one in found:
        table.add_row(one.role, one.name, one.serial_number, "now" if one.is_new else "before")
    console = make_console()
    console.print(table)
    console.print(
        f"Copy {place / REVOKED_FILE} to the scheduler's folder of certificates, if that is another.", style="dim"
    )
