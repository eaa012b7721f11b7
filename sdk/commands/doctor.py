"""`sdk doctor`: what this machine can build and emulate, and what is missing."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

from sdk.options.devices_options import complete_device_names
from sdk.options.shared_options import HexagonSdkOption, JsonOption, complete_target_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devices.health.probe import DeviceProbe
    from sdk.checks.machine_checks import MachineCheck
    from sdk.settings import Settings
    from targets.profile.profile import ProfileListing


def register(application: typer.Typer) -> None:
    """Add the command to the application."""
    application.command("doctor")(doctor)


def doctor(
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "-t",
            metavar="PROFILE",
            help="Check only what this target profile needs.",
            autocompletion=complete_target_names,
        ),
    ] = None,
    hexagon_sdk_root: HexagonSdkOption = None,
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            "-r",
            metavar="DEVICE",
            help="Also ask this phone of the inventory about its DSP.",
            autocompletion=complete_device_names,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check what this machine can build and emulate; exit code 1 where something is missing.

    Example: sdk doctor --target arm64
    """
    from sdk.checks.machine_checks import check_machine
    from sdk.output import print_json
    from sdk.settings import read_settings

    settings = read_settings()
    if hexagon_sdk_root is not None:
        settings = replace(settings, hexagon_sdk_root=hexagon_sdk_root.absolute())
    checks = check_machine(settings, _chosen(target), must_run_here=target is not None)
    if device is not None:
        checks += _dsp_checks(device, settings)
    passed = all(check.passed or not check.needed for check in checks)
    if as_json:
        print_json({"passed": passed, "checks": [asdict(check) for check in checks]})
    else:
        _print_checks(checks)
    if not passed:
        raise typer.Exit(1)


def _chosen(target: str | None) -> list[ProfileListing]:
    from sdk.settings import read_settings
    from targets.profile.loader import list_profiles, load_profile
    from targets.profile.profile import ProfileListing

    folder = read_settings().profile_folder
    if target is None:
        return list_profiles(folder)
    profile = load_profile(target, folder)
    return [ProfileListing(profile.name, profile.source, profile, None)]


def _dsp_checks(name: str, settings: Settings) -> Iterator[MachineCheck]:
    from sdk.checks.machine_checks import check_dsp
    from sdk.inventory.device_access import reach_device
    from sdk.inventory.lookup import open_inventory

    device = open_inventory(None, settings).find(name)

    def probe() -> DeviceProbe:
        with reach_device(device, settings, lambda text: typer.echo(text, err=True)) as reached:
            return reached.probe()

    return check_dsp(name, probe)


def _print_checks(checks: list[MachineCheck]) -> None:
    from rich.table import Table
    from rich.text import Text

    from sdk.output import make_console

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for check in checks:
        lacking = Text("missing", style="red") if check.needed else Text("not here", style="dim")
        mark = Text("ok", style="green") if check.passed else lacking
        table.add_row(mark, Text(check.name), Text(check.found))
        if check.fix:
            table.add_row("", "", Text(check.fix, style="yellow"))
    make_console().print(table)
