"""`sdk farm certificates`: what the workers and users of a farm know each other by."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from halide_autotune.sdk.options.shared_options import JsonOption
from halide_autotune.sdk.output import make_console, plain_table, print_json
from halide_autotune.sdk.settings import read_settings
from halide_autotune.targets.values.records import plain

if TYPE_CHECKING:
    from halide_autotune.autotune_loop.farm.certificates.authority import FarmCertificate

_SOON_DAYS = 30


def certificates(
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder", metavar="DIR", help="Folder of the certificates. Default: the folder farm in your settings."
        ),
    ] = None,
    hosts: Annotated[
        list[str] | None,
        typer.Option("--host", metavar="NAME[,NAME...]", help="A machine with a worker or the scheduler. Repeatable."),
    ] = None,
    users: Annotated[
        list[str] | None, typer.Option("--user", metavar="NAME", help="Someone who only tunes. Repeatable.")
    ] = None,
    renew: Annotated[
        bool, typer.Option("--renew", help="Renew the named certificates, or this machine's if none is named.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Make a farm's certificates, or show them: an authority, this machine's, and one for each host and user.

    What is there is never overwritten without --renew. Each host or user gets a folder of their own, which goes to
    their machine as ~/.config/halide-autotune-sdk/farm. Whoever has one of them can run programs on the workers.

    Example: sdk farm certificates --host lab1,192.168.1.5 --host lab2 --user ana
    """
    from halide_autotune.autotune_loop.farm.certificates.authority import make_certificates
    from halide_autotune.sdk.select.farm_choice import certificates_folder

    place = certificates_folder(folder, read_settings())
    found = make_certificates(place, hosts or (), users or (), renew=renew)
    if as_json:
        print_json({"folder": str(place), "certificates": [_fields(one) for one in found]})
    else:
        _print_table(place, found)


def _fields(one: FarmCertificate) -> dict[str, object]:
    return {**plain(one), "expires": one.expires.isoformat(), "days_left": one.days_left}


def _print_table(place: Path, found: tuple[FarmCertificate, ...]) -> None:
    from rich.text import Text

    table = plain_table("certificate", "of", "made out for", "expires", "folder")
    for one in found:
        days = one.days_left
        expired = "revoked" if one.is_revoked else "expired" if days < 0 else f"in {days} days"
        style = "red" if days < 0 or one.is_revoked else "yellow" if days < _SOON_DAYS else ""
        folder = one.folder.relative_to(place) if one.folder.is_relative_to(place) else one.folder
        expires = Text(f"{one.expires:%Y-%m-%d} ({expired})", style=style)
        table.add_row(one.role, one.name, ", ".join(one.names), expires, f"{folder}{' (new)' if one.is_new else ''}")
    console = make_console()
    console.print(table)
    console.print(f"They are in {place}. Keep ca-key.pem there: whoever has it can add hosts and users.", style="dim")
