"""`sdk farm scheduler` and `sdk farm worker`: what serves a farm until it is stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from halide_autotune.sdk.options.devices_options import InventoryOption
from halide_autotune.sdk.options.shared_options import CertificatesOption, PlainOption, SchedulerOption
from halide_autotune.sdk.service.interrupts import stop_on_interrupt
from halide_autotune.sdk.settings import read_settings
from halide_autotune.targets.process.stop_signal import StopSignal

_HISTORY_FILE = "farm-history.sqlite3"


def scheduler(
    listen: Annotated[
        str, typer.Option("--listen", metavar="ADDRESS", help="tls://[HOST]:PORT; without HOST, on all addresses.")
    ] = "tls://:8786",
    history: Annotated[
        Path | None,
        typer.Option("--history", metavar="FILE", help="The farm's history. Default: one of its own in your settings."),
    ] = None,
    no_history: Annotated[
        bool, typer.Option("--no-history", help="Keep nothing of what the farm's runs have timed.")
    ] = False,
    certificates: CertificatesOption = None,
    plain: PlainOption = False,
) -> None:
    """Run a farm's scheduler until Ctrl-C or SIGTERM; one line in the log for each worker that comes or goes.

    Workers of another Halide, another SDK or other plug-ins are refused. What runs have timed is kept in a history,
    which the runs of all users start from.

    Example: sdk farm scheduler --listen tls://:8786
    """
    from halide_autotune.autotune_loop.farm.address import farm_address
    from halide_autotune.sdk.select.farm_choice import certificates_folder
    from halide_autotune.sdk.service.service_log import log_line, log_to_stderr

    settings = read_settings()
    address = farm_address(listen, certificates_folder(certificates, settings), allow_plain=plain)
    stop = StopSignal()
    log_to_stderr()
    # Imported here: Dask costs half a second that a wrong argument need not pay.
    from halide_autotune.autotune_loop.farm.scheduler import serve_scheduler
    from halide_autotune.autotune_loop.history.farm_history import NoHistory, ServedHistory
    from halide_autotune.autotune_loop.history.history import History

    kept = History((history or settings.config_folder / _HISTORY_FILE).absolute())
    served = NoHistory() if no_history else ServedHistory(kept, log_line)
    with stop_on_interrupt(stop, lambda: log_line("The scheduler has stopped.")):
        serve_scheduler(address, log_line, stop, served.handlers)


def worker(
    inventory: InventoryOption = None,
    scheduler: SchedulerOption = None,
    build_slots: Annotated[
        int | None,
        typer.Option("--build-slots", metavar="N", min=0, help="Builds at once. Default: all cores but one."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Its name in the farm. Default: its host name.")
    ] = None,
    no_devices: Annotated[bool, typer.Option("--no-devices", help="Only build, without devices.")] = False,
    certificates: CertificatesOption = None,
    plain: PlainOption = False,
) -> None:
    """Serve a farm with the devices of the inventory and with cores to build on, until Ctrl-C or SIGTERM.

    When the scheduler goes away it is looked for until it is back. At the end every device is given back.

    Example: sdk farm worker --inventory devices.toml --scheduler tls://lab1:8786
    """
    from halide_autotune.sdk.inventory.lookup import open_inventory
    from halide_autotune.sdk.select.farm_choice import choose_farm
    from halide_autotune.sdk.service.service_log import log_line, log_to_stderr

    settings = read_settings()
    address = choose_farm(scheduler, certificates, settings, allow_plain=plain)
    entries = () if no_devices else open_inventory(inventory, settings).devices
    stop = StopSignal()
    log_to_stderr()
    # Imported here: Dask costs half a second that a wrong argument need not pay.
    from halide_autotune.autotune_loop.execute.serve_worker import serve_worker
    from halide_autotune.sdk.service.farm_worker import open_farm_worker

    with (
        open_farm_worker(name, entries, build_slots, settings, log_line) as farm_worker,
        stop_on_interrupt(stop, lambda: log_line(f"{farm_worker.name} leaves the farm.")),
    ):
        serve_worker(farm_worker, address, log_line, stop)
