"""What goes on in a farm, for people and for machines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from halide_autotune.sdk.display.quantities import duration_text, iso_text, moment_text
from halide_autotune.sdk.output import plain_table
from halide_autotune.targets.values.records import plain

if TYPE_CHECKING:
    from halide_autotune.autotune_loop.farm.state import FarmDeviceState, FarmRun, FarmRunState, FarmState

_FAILURES_SHOWN = 5
# A measurement that is called by another name than a schedule's.
_TASKS = {
    "measure": "timing a schedule",
    "prepare_reference": "running the reference",
    "open_device": "connecting",
    "sense": "reading sensors",
    "forget": "clearing up",
}
_STYLES = {"busy": "yellow", "held": "cyan", "free": "green"}


def farm_fields(address: str, state: FarmState) -> dict[str, object]:
    """Return the state as JSON takes it."""
    return {
        "scheduler": address,
        "workers": plain(state.workers),
        "devices": [{**_flat(row, "device", "report"), "state": row.report.state} for row in state.devices],
        "runs": [{**_flat(row, "run"), "since": iso_text(row.since_unix_s)} for row in state.runs],
        "put_out": [{**plain(worker), "at": iso_text(worker.unix_s)} for worker in state.put_out],
    }


def _flat(row: FarmDeviceState | FarmRunState, *records: str) -> dict[str, Any]:
    """The fields of a row, with those of the records in it."""
    fields: dict[str, Any] = plain(row)
    for name in records:
        fields |= fields.pop(name)
    return fields


def farm_text(address: str, state: FarmState) -> RenderableType:
    """Return the state as tables; those with nothing in them are left out."""
    parts: list[RenderableType] = []
    if state.workers:
        parts += [_workers(state), Text()]
    else:
        none = f"The farm of {address} has no workers{'' if state.put_out else ' yet'}."
        parts += [Text(f"{none} Start one with `sdk farm worker` on a lab host."), Text()]
    if state.devices:
        parts += [_devices(state), Text()]
    if state.runs:
        parts += [_runs(state), Text()]
    for title, lines in (("put out of the farm", list(_put_out(state))), ("recent failures", list(_failures(state)))):
        if lines:
            parts += [Text(title, style="bold"), *map(Text, lines), Text()]
    return Group(*parts[:-1])


def _workers(state: FarmState) -> Table:
    table = plain_table("host", "address", "devices", "build slots")
    for worker in state.workers:
        names = ", ".join(row.device.name for row in state.devices if row.worker == worker.name)
        slots = f"{min(worker.building, worker.build_slots)} of {worker.build_slots} in use"
        table.add_row(worker.name, worker.address, names or "none", slots if worker.build_slots else "none")
    return table


def _devices(state: FarmState) -> Table:
    runs = {row.run.run_id: row.run for row in state.runs}
    table = plain_table("device", "profile", "labels", "host", "state", "queue")
    for row in state.devices:
        device, doing = row.device, Text(_doing(row, runs), style=_STYLES[row.report.state])
        labels = ", ".join(device.labels)
        table.add_row(device.name, device.profile_name, labels, row.worker, doing, _queue_text(row, runs))
    return table


def _doing(row: FarmDeviceState, runs: dict[str, FarmRun]) -> str:
    report = row.report
    if report.run_id:
        task = _TASKS.get(report.task, report.task)
        return f"{task} for {_who(report.run_id, runs)}, {duration_text(report.busy_s)}"
    if report.users:
        return f"open for {', '.join(_who(run_id, runs) for run_id in report.users)}"
    return report.state


def _queue_text(row: FarmDeviceState, runs: dict[str, FarmRun]) -> str:
    counts = {run_id: row.waiting.count(run_id) for run_id in dict.fromkeys(row.waiting)}
    return ", ".join(f"{count} of {_who(run_id, runs)}" for run_id, count in counts.items()) or "empty"


def _who(run_id: str, runs: dict[str, FarmRun]) -> str:
    run = runs.get(run_id)
    return f"{run.user} ({run.title})" if run is not None else f"run {run_id}"


def _runs(state: FarmState) -> Table:
    table = plain_table("run", "user", "tunes", "priority", "since", "builds", "next measurement")
    for row in state.runs:
        run, since = row.run, moment_text(row.since_unix_s)
        table.add_row(run.run_id, run.user, run.title, run.priority, since, str(row.building), _next_text(row))
    return table


def _next_text(row: FarmRunState) -> str:
    if not row.run.under_way:
        return "none is waiting"
    if row.position == 0:
        return "under way"
    return f"{row.position} before it, in about {duration_text(row.start_s)}"


def _put_out(state: FarmState) -> Iterator[str]:
    """The newest last."""
    for worker in state.put_out[-_FAILURES_SHOWN:]:
        yield f"  {worker.name}, {duration_text(time.time() - worker.unix_s)} ago: {worker.reason}"


def _failures(state: FarmState) -> Iterator[str]:
    """The newest last."""
    found = [(failure, row) for row in state.devices for failure in row.report.failures]
    for failure, row in sorted(found, key=lambda pair: pair[0].unix_s)[-_FAILURES_SHOWN:]:
        ago = duration_text(time.time() - failure.unix_s)
        yield f"  {row.device.name} on {row.worker}, {ago} ago: {failure.message}"
