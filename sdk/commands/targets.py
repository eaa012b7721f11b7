"""`sdk targets`: the target profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from halide_autotune.sdk.options.completion import COMPLETIONS
from halide_autotune.sdk.options.shared_options import JsonOption
from halide_autotune.sdk.output import make_console, plain_table, print_fields, print_json
from halide_autotune.sdk.settings import read_settings
from halide_autotune.targets.errors import ToolchainError

if TYPE_CHECKING:
    from halide_autotune.sdk.settings import Settings
    from halide_autotune.targets.profile.profile import ProfileListing, TargetProfile


group = typer.Typer(name="targets")


@group.callback(invoke_without_command=True)
def targets(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the target profiles.

    Example: sdk targets
    """
    context.obj = as_json
    if context.invoked_subcommand is not None:
        return
    from halide_autotune.targets.profile.loader import list_profiles

    folder = read_settings().profile_folder
    listings = list_profiles(folder)
    if as_json:
        profiles = [_listing_dict(listing) for listing in listings]
        print_json({"profile_folder": str(folder), "profiles": profiles})
    else:
        _print_table(listings, str(folder))


@group.command()
def show(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="PROFILE",
            help="Name or path of a target profile.",
            autocompletion=COMPLETIONS["targets"],
        ),
    ],
    as_json: JsonOption = False,
) -> None:
    """Show one target profile, with everything that it inherits or probes.

    Example: sdk targets show arm64
    """
    from halide_autotune.targets.profile.loader import load_profile

    settings = read_settings()
    profile = load_profile(name, settings.profile_folder)
    shown = _profile_dict(profile) | _detected(profile, settings)
    if as_json or context.obj:
        print_json(shown)
    else:
        print_fields(_flat(shown))


def _detected(profile: TargetProfile, settings: Settings) -> dict[str, object]:
    """Return what depends on this machine: the toolchain in use, or the card and the assembler."""
    from halide_autotune.targets.toolchain.c_toolchain import ZIG_KIND, describe_toolchains

    if profile.machine.gpu is not None:
        from halide_autotune.sdk.checks.card_checks import check_assembler, check_local_card

        return {"card_here": check_local_card(profile, settings).found, "ptxas": check_assembler(settings).found}
    if profile.toolchain.kind == ZIG_KIND:
        return {}
    try:
        return {"toolchain_in_use": describe_toolchains(profile, settings.cache_folder, settings.ndk_root)}
    except ToolchainError as error:
        return {"toolchain_in_use": str(error)}


def _profile_dict(profile: TargetProfile) -> dict[str, object]:
    return profile.to_dict() | {"source": profile.source}


def _listing_dict(listing: ProfileListing) -> dict[str, object]:
    if listing.profile is not None:
        return _profile_dict(listing.profile) | {"error": None}
    return {"name": listing.name, "source": listing.source, "error": listing.error}


def _print_table(listings: list[ProfileListing], folder: str) -> None:
    table = plain_table("profile", "device", "cores", "Halide target", "description", numbers=["cores"])
    for listing in listings:
        profile = listing.profile
        if profile is None:
            continue
        table.add_row(
            listing.name,
            profile.device_kind,
            str(profile.machine.parallelism),
            profile.halide_target,
            profile.description,
        )
    console = make_console()
    console.print(table)
    for listing in listings:
        if listing.error is not None:
            console.print(f"{listing.name}: {listing.error}", style="red", soft_wrap=True)
    console.print(f"Your own profiles go into {folder}.", style="dim")


def _flat(values: dict[str, object], prefix: str = "") -> list[tuple[str, str]]:
    """Return nested values by dotted keys."""
    rows: list[tuple[str, str]] = []
    for key, value in values.items():
        if isinstance(value, dict) and value:
            rows += _flat(value, f"{prefix}{key}.")
        elif isinstance(value, list):
            rows.append((prefix + key, " ".join(str(item) for item in value) or "none"))
        else:
            rows.append((prefix + key, "none" if value in (None, "", {}) else str(value)))
    return rows
