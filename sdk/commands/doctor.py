"""`sdk doctor`: what this machine can build and emulate, and what is missing; or whether a run agrees with itself."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from halide_autotune.autotune_loop.specification.options import DeviceOptions
from halide_autotune.sdk.options.completion import COMPLETIONS
from halide_autotune.sdk.options.shared_options import HexagonSdkOption, JsonOption, declared
from halide_autotune.sdk.output import make_console, plain_table, print_json, show_progress
from halide_autotune.sdk.settings import read_settings
from halide_autotune.targets.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from halide_autotune.devices.health.probe import DeviceProbe
    from halide_autotune.sdk.checks.check import Check
    from halide_autotune.sdk.settings import Settings


def doctor(
    target: Annotated[
        str | None,
        declared(DeviceOptions, "target", help="Check only what this target profile needs."),
    ] = None,
    hexagon_sdk_root: HexagonSdkOption = None,
    device: Annotated[
        str | None,
        declared(
            DeviceOptions,
            "device",
            help="Also check the DSP of this phone of the inventory.",
            autocompletion=COMPLETIONS["inventory"],
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            "--run",
            metavar="FOLDER",
            help="Check instead whether the files, the database and the headers of this run agree.",
            autocompletion=COMPLETIONS["runs"],
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check what this machine can build and emulate. The exit code is 1 if something is missing.

    Example: sdk doctor --target arm64
    """
    if run is not None:
        if given := [name for name, value in (("--target", target), ("--device", device)) if value is not None]:
            raise UsageError("--run checks a run and nothing else.", next_step=f"Leave {given[0]} out.")
        checks = _run_checks(run)
    else:
        checks = _machine_checks(target, hexagon_sdk_root, device)
    passed = all(check.passed or not check.needed for check in checks)
    if as_json:
        print_json({"passed": passed, "checks": [asdict(check) for check in checks]})
    else:
        print_checks(checks, "ok", "missing" if run is None else "wrong")
    if not passed:
        raise typer.Exit(1)


def _run_checks(folder: Path) -> list[Check]:
    from halide_autotune.sdk.checks.run_checks import check_run

    with show_progress(f"Checking {folder}"):
        return check_run(folder)


def _machine_checks(target: str | None, hexagon_sdk_root: Path | None, device: str | None) -> list[Check]:
    from halide_autotune.sdk.checks.extension_checks import check_extensions
    from halide_autotune.sdk.checks.machine_checks import check_machine
    from halide_autotune.targets.profile.loader import list_profiles, load_profile
    from halide_autotune.targets.profile.profile import ProfileListing

    settings = read_settings()
    if hexagon_sdk_root is not None:
        settings = replace(settings, hexagon_sdk_root=hexagon_sdk_root.absolute())
    if target is None:
        listings = list_profiles(settings.profile_folder)
    else:
        profile = load_profile(target, settings.profile_folder)
        listings = [ProfileListing(profile.name, profile.source, profile, None)]
    checks = [*check_machine(settings, listings, must_run_here=target is not None), *check_extensions()]
    if device is not None:
        checks += _dsp_checks(device, settings)
    return checks


def _dsp_checks(name: str, settings: Settings) -> Iterator[Check]:
    from halide_autotune.sdk.checks.machine_checks import check_dsp
    from halide_autotune.sdk.inventory.device_access import reach_device
    from halide_autotune.sdk.inventory.lookup import open_inventory

    device = open_inventory(None, settings).find(name)

    def probe() -> DeviceProbe:
        with reach_device(device, settings, lambda text: typer.echo(text, err=True)) as reached:
            return reached.probe()

    return check_dsp(name, probe)


def print_checks(checks: Sequence[Check], good: str, bad: str) -> None:
    """Print a line for each check, with its fix below it.

    Args:
        good, bad: the first word of a check that passed, and of one that failed.
    """
    from rich.text import Text

    table = plain_table("state", "name", "found")
    table.show_header = False
    for check in checks:
        failed = Text(bad, style="red") if check.needed else Text("not here", style="dim")
        mark = Text(good, style="green") if check.passed else failed
        table.add_row(mark, Text(check.name, style="bold"), check.found)
        if check.fix:
            table.add_row("", "", Text(check.fix, style="yellow"))
    make_console().print(table)
