"""Where a farm's scheduler is, and what makes its workers and users known to each other."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from halide_autotune.targets.errors import UsageError

if TYPE_CHECKING:
    from distributed import Security

DEFAULT_PORT = 8786
_EXAMPLE = f"tls://lab.example:{DEFAULT_PORT}"


@dataclass(frozen=True)
class FarmAddress:
    """A scheduler's address and what one shows it.

    Attributes:
        address: tls://host:port, or tcp://host:port.
        certificates: the folder of one's own certificate and key, and of the authority's; None for a plain address.
    """

    address: str
    certificates: Path | None = None

    def security(self, only: bytes | None = None) -> Security:
        """What Dask is told: with `certificates`, every connection is encrypted and both ends show a certificate.

        Args:
            only: the one certificate (DER) that may be at the other end; None for all of the farm that are not revoked.

        Raises:
            FarmError: a file is missing or wrong.
        """
        from distributed import Security

        from halide_autotune.autotune_loop.farm.certificates.certificate_files import check_certificate
        from halide_autotune.autotune_loop.farm.certificates.tls import FarmSecurity

        if self.certificates is None:
            return Security(require_encryption=False)
        check_certificate(self.certificates)
        return FarmSecurity(self.certificates, only)


def farm_address(text: str, certificates: Path, *, allow_plain: bool = False) -> FarmAddress:
    """Read an address as a user writes it; without a port it has Dask's usual one.

    Args:
        certificates: the folder for a tls:// address; it may not exist.
        allow_plain: a tcp:// address may be of another machine, too.

    Raises:
        UsageError: it is no such address, or a plain one of another machine.
    """
    parts, port = _parts(text)
    host = parts.hostname or ""
    shown = f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}"
    if parts.scheme == "tls":
        return FarmAddress(shown, certificates)
    if not (allow_plain or _is_loopback(host)):
        raise UsageError(
            f"{shown} is on another machine, and tcp:// has no protection: whoever reaches the port can run"
            " programs on every worker.",
            next_step=f"Use tls://{host}:{port} (see `sdk farm certificates --help`).",
        )
    return FarmAddress(shown)


def _parts(text: str) -> tuple[SplitResult, int]:
    try:
        parts = urlsplit(text)
        port = DEFAULT_PORT if parts.port is None else parts.port
    except ValueError:
        raise _not_an_address(text) from None
    beside = parts.username or parts.password or parts.query or parts.fragment or parts.path.strip("/")
    if parts.scheme not in ("tls", "tcp") or beside or not 0 < port < 65536:
        raise _not_an_address(text)
    return parts, port


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _not_an_address(text: str) -> UsageError:
    return UsageError(f"{text[:200]!r} is not the address of a scheduler.", next_step=f"Use, for example, {_EXAMPLE}.")
