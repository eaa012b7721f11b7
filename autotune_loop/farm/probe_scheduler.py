"""One connection to a scheduler before Dask makes its own, which would try for half a minute and then say little."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from halide_autotune.autotune_loop.farm.address import FarmAddress
from halide_autotune.autotune_loop.farm.certificates.certificate_files import (
    CA_FILE,
    CERTIFICATE_FILE,
    KEY_FILE,
    RENEW_IT,
    REVOKED_FILE,
    RevokedError,
    check_certificate,
)
from halide_autotune.autotune_loop.farm.certificates.tls import refuse_revoked
from halide_autotune.targets.errors import FarmError

_CONNECT_LIMIT_S = 15.0
# A scheduler that is busy, or on a busy machine, takes its time; Dask alone would try for half a minute.
_ANSWER_LIMIT_S = 15.0
# What every Dask peer says first has this in it.
_MARK = b"pickle-protocol"
_FIRST_BYTES = 4096
# OpenSSL's codes for a chain that does not lead to the authority.
_NO_ISSUER = (18, 19, 20, 21)
_START_ONE = "Start one with `sdk farm scheduler`, or correct the address (--scheduler, or [farm] in sdk.toml)."
_RENEW_THE_SCHEDULERS = f"{RENEW_IT} Then restart the scheduler."
_ONE_FARM = "Both must come from one authority: copy the folder that `sdk farm certificates` made for this machine."


def probe_scheduler(address: FarmAddress) -> bytes | None:
    """Make sure that a scheduler answers at the address and that both sides trust each other; takes seconds at most.

    Returns:
        The certificate (DER) that it shows; None without TLS.

    Raises:
        RevokedError: our certificate is on the scheduler's list of revoked ones, or on our folder's.
        FarmError: nothing listens; it is no scheduler; a certificate is missing, expired or another authority's.
    """
    own, shown = address.certificates, None
    if own is not None:
        check_certificate(own)
    with _connected(address) as plain:
        if own is None:
            first = _first_bytes(plain, address)
        else:
            first, shown = _through_tls(plain, address, own)
    if _MARK not in first:
        raise FarmError(f"{address.address} is not a farm's scheduler.", next_step=_START_ONE)
    return shown


@contextlib.contextmanager
def _connected(address: FarmAddress) -> Iterator[socket.socket]:
    parts = urlsplit(address.address)
    try:
        connection = socket.create_connection((parts.hostname, parts.port or 0), _CONNECT_LIMIT_S)
    except ConnectionRefusedError as error:
        raise FarmError(f"No scheduler listens at {address.address}.", next_step=_START_ONE) from error
    except socket.gaierror as error:
        raise FarmError(
            f"Cannot find the host {parts.hostname}: {error.strerror}.",
            next_step="Correct the address (--scheduler, or [farm] in sdk.toml).",
        ) from error
    except OSError as error:
        reason = "no answer" if isinstance(error, TimeoutError) else (error.strerror or str(error)).lower()
        raise FarmError(
            f"Cannot reach {address.address}: {reason}.",
            next_step="Check that the scheduler's machine is on, and that no firewall blocks the port.",
        ) from error
    with connection:
        yield connection


def _through_tls(plain: socket.socket, address: FarmAddress, own: Path) -> tuple[bytes, bytes | None]:
    """The peer's first bytes and its certificate. That it refuses ours shows only when something is read."""
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=str(own / CA_FILE))
    context.load_cert_chain(own / CERTIFICATE_FILE, own / KEY_FILE)
    if (own / REVOKED_FILE).exists():
        refuse_revoked(context, own)
    # As Dask does: whoever has a host's certificate of this farm may be its scheduler.
    context.check_hostname = False
    try:
        with context.wrap_socket(plain, server_hostname=urlsplit(address.address).hostname) as secure:
            return _first_bytes(secure, address), secure.getpeercert(binary_form=True)
    except ssl.SSLCertVerificationError as error:
        raise _not_trusted(address, error) from error
    except ssl.SSLError as error:
        raise _broken_off(address, own, error) from error
    except TimeoutError as error:
        raise _not_tls(address) from error
    except OSError as error:
        raise FarmError(
            f"{address.address} closed the connection.",
            next_step="Read its log. It may not be a scheduler, or belong to another farm.",
        ) from error


def _not_trusted(address: FarmAddress, error: ssl.SSLCertVerificationError) -> FarmError:
    whose = f"The certificate of the scheduler at {address.address}"
    if "expired" in error.verify_message:
        return FarmError(f"{whose} has expired.", next_step=_RENEW_THE_SCHEDULERS)
    if "revoked" in error.verify_message:
        return FarmError(f"{whose} was revoked.", next_step=_RENEW_THE_SCHEDULERS)
    why = "another authority has made it" if error.verify_code in _NO_ISSUER else error.verify_message
    return FarmError(f"{whose} is not of this farm: {why}.", next_step=_ONE_FARM)


def _broken_off(address: FarmAddress, own: Path, error: ssl.SSLError) -> FarmError:
    """What it means that the other side has ended the handshake."""
    if "ALERT" not in (error.reason or ""):
        return _not_tls(address)
    alert = (error.reason or "").split("ALERT_")[-1].replace("_", " ").lower()
    message = f"The scheduler at {address.address} refuses the certificate {own / CERTIFICATE_FILE}"
    if alert == "certificate revoked":
        return RevokedError(f"{message}: it was revoked.", next_step=f"Ask for a new one. {RENEW_IT}")
    return FarmError(f"{message}: {alert}.", next_step=_ONE_FARM)


def _not_tls(address: FarmAddress) -> FarmError:
    return FarmError(
        f"{address.address} does not speak TLS.",
        next_step=f"If it was started with --plain, its address begins with tcp://. Otherwise: {_START_ONE}",
    )


def _first_bytes(connection: socket.socket, address: FarmAddress) -> bytes:
    """What the peer says before it is spoken to, up to the mark; less where it says less."""
    until_s = time.monotonic() + _ANSWER_LIMIT_S
    said = b""
    while _MARK not in said and len(said) < _FIRST_BYTES and (left_s := until_s - time.monotonic()) > 0:
        connection.settimeout(left_s)
        try:
            received = connection.recv(_FIRST_BYTES)
        except TimeoutError:
            break
        if not received:
            break
        said += received
    if not said and address.certificates is None:
        raise FarmError(
            f"{address.address} accepts connections, but sends nothing.",
            next_step="If the scheduler uses certificates, its address begins with tls://.",
        )
    return said
