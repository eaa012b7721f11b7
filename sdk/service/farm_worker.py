"""From an inventory and this machine to what it puts into a farm."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from halide_autotune.autotune_loop.execute.worker import FarmWorker
from halide_autotune.autotune_loop.farm.device import served_devices
from halide_autotune.autotune_loop.specification.workspace import Workspace
from halide_autotune.devices.device import Device
from halide_autotune.devices.inventory.inventory import InventoryDevice
from halide_autotune.devices.lease.token import lasting_token
from halide_autotune.devices.local.cores import plan_cores
from halide_autotune.devices.remote.open import open_remote
from halide_autotune.devices.remote.transport import AgentTransport
from halide_autotune.devices.remote_place import PasswordSource, SshAddress
from halide_autotune.sdk.inventory.connections import connection_settings
from halide_autotune.sdk.inventory.device_access import prepare_agents
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import FarmError, UsageError, os_error_as
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.process.file_lock import lock_alone
from halide_autotune.targets.profile.host_probe import usable_memory_bytes

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", re.ASCII)
_MEMORY_SHARE = 0.8


@contextlib.contextmanager
def open_farm_worker(
    name: str | None,
    entries: Sequence[InventoryDevice],
    build_slots: int | None,
    settings: Settings,
    tell: Callable[[str], None],
) -> Iterator[FarmWorker]:
    """A worker with the inventory's devices, and a scratch folder that is its own.

    Args:
        name: what the farm calls it; None takes the host's name.
        build_slots: None takes all cores but one.
        tell: a line for the log.

    Raises:
        UsageError: the name cannot be one, there is nothing to serve with, or a device wants a typed password.
        FarmError: a worker of that name runs on this machine already.
        ToolchainError: the program for a device cannot be built.
    """
    name = socket.gethostname() if name is None else name
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name[:80]!r} is not a valid worker name.", next_step="Choose one with --name, for example lab1."
        )
    usable = frozenset(os.sched_getaffinity(0))
    slots = max(1, len(usable) - 1) if build_slots is None else build_slots
    _check(entries, slots)
    with _own_folder(settings.cache_folder / "farm" / name) as folder:
        if entries:
            tell(f"Preparing the program for {', '.join(entry.name for entry in entries)}.")
            prepare_agents(entries, settings)
        connections = connection_settings(settings)
        cache = ContentCache(settings.cache_folder)
        # A worker that is started again after a crash takes its leases back at once: nobody else runs in its folder.
        token = lasting_token(folder)
        workspace = Workspace(
            cache_folder=settings.cache_folder,
            work_folder=folder,
            lock_folder=settings.cache_folder / "locks",
            environment=settings.environment,
            cores=plan_cores(usable, 0),
            connections=connections,
            memory_bytes=int(usable_memory_bytes() * _MEMORY_SHARE / max(1, slots)),
            ndk_root=settings.ndk_root,
        )

        def open_device(device: Device) -> AgentTransport:
            return open_remote(device, connections, cache, token)

        yield FarmWorker(name, workspace, served_devices(entries), slots, open_device)


def _check(entries: Sequence[InventoryDevice], build_slots: int) -> None:
    if not entries and not build_slots:
        raise UsageError(
            "There is nothing to serve a farm with: no device and no build slot.",
            next_step="Name an inventory with --inventory, or give --build-slots.",
        )
    for entry in entries:
        if isinstance(entry.place.address, SshAddress) and entry.place.address.password_source is PasswordSource.PROMPT:
            raise UsageError(
                f"{entry.name} needs a password to be typed, which a worker cannot ask for.",
                next_step="Use a key, or keep the password in the keyring: `sdk devices add --password keyring`.",
            )


@contextlib.contextmanager
def _own_folder(folder: Path) -> Iterator[Path]:
    """The folder, empty, for as long as this process lives; what a killed predecessor left is removed."""
    with os_error_as(FarmError, f"Cannot use {folder}", next_step="Set SDK_CACHE_DIR."):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            lock_alone(lock)
        except BlockingIOError as error:
            raise FarmError(
                f"A worker called {folder.name} already runs on this machine.",
                next_step="Stop it, or choose another --name.",
            ) from error
        _empty(folder)
        yield folder
        _empty(folder)
    finally:
        os.close(lock)


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
