"""`sdk farm scheduler`: what all workers and users of a farm connect to."""

from __future__ import annotations

from typing import Annotated

import typer

from sdk.options.shared_options import CertificatesOption, PlainOption
from sdk.service.interrupts import stop_on_interrupt
from sdk.settings import read_settings
from targets.process.stop_signal import StopSignal


def scheduler(
    listen: Annotated[
        str, typer.Option("--listen", metavar="ADDRESS", help="tls://[HOST]:PORT; without HOST, on all addresses.")
    ] = "tls://:8786",
    certificates: CertificatesOption = None,
    plain: PlainOption = False,
) -> None:
    """Run a farm's scheduler until Ctrl-C or SIGTERM; one line in the log for each worker that comes or goes.

    Workers of another Halide, another SDK or other plug-ins are refused.

    Example: sdk farm scheduler --listen tls://:8786
    """
    from autotune_loop.farm.address import farm_address
    from sdk.select.farm_choice import tls_files
    from sdk.service.service_log import log_line, log_to_stderr

    address = farm_address(listen, tls_files(certificates, read_settings()), allow_plain=plain)
    stop = StopSignal()
    log_to_stderr()
    # Imported here: Dask costs half a second that a wrong argument need not pay.
    from autotune_loop.farm.scheduler import serve_scheduler

    with stop_on_interrupt(stop, lambda: log_line("The scheduler has stopped.")):
        serve_scheduler(address, log_line, stop)
