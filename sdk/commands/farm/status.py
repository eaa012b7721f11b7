"""`sdk farm status`: who is in a farm, what its devices do, and who waits for them."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from halide_autotune.sdk.options.shared_options import CertificatesOption, JsonOption, PlainOption, SchedulerOption
from halide_autotune.sdk.output import make_console, print_json
from halide_autotune.sdk.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from halide_autotune.autotune_loop.farm.state import FarmState

_REFRESH_S = 2.0


def status(
    scheduler: SchedulerOption = None,
    watch: Annotated[bool, typer.Option("--watch", help="Show it again every two seconds, until Ctrl-C.")] = False,
    certificates: CertificatesOption = None,
    plain: PlainOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show a farm's hosts, devices, queues and recent failures: who measures what, and who comes next.

    Example: sdk farm status --scheduler tls://lab1:8786
    """
    from halide_autotune.sdk.display.farm_view import farm_fields, farm_text
    from halide_autotune.sdk.select.farm_choice import choose_farm

    address = choose_farm(scheduler, certificates, read_settings(), allow_plain=plain)
    # Imported here: Dask costs half a second that a wrong argument need not pay.
    from halide_autotune.autotune_loop.farm.client import farm_client
    from halide_autotune.autotune_loop.farm.state import farm_state

    with farm_client(address) as client:
        if watch:
            _watch(lambda: farm_state(client), address.address, as_json)
        elif as_json:
            print_json(farm_fields(address.address, farm_state(client)))
        else:
            make_console().print(farm_text(address.address, farm_state(client)))


def _watch(ask: Callable[[], FarmState], address: str, as_json: bool) -> None:
    """On a terminal in place; else one after the other, JSON a line each."""
    from rich.live import Live

    from halide_autotune.sdk.display.farm_view import farm_fields, farm_text

    console = make_console()
    in_place = console.is_terminal and not as_json
    with Live(console=console, auto_refresh=False) if in_place else contextlib.nullcontext() as live:
        while True:
            state = ask()
            if live is not None:
                live.update(farm_text(address, state), refresh=True)
            elif as_json:
                print(json.dumps(farm_fields(address, state)))
            else:
                console.print(farm_text(address, state), "")
            sys.stdout.flush()
            time.sleep(_REFRESH_S)
