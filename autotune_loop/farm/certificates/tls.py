"""Who is let in by TLS: whom the farm's authority has named and not revoked, or the holder of one certificate alone."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

from cryptography import x509
from distributed import Security

from halide_autotune.autotune_loop.farm.certificates.certificate_files import (
    CA_FILE,
    CERTIFICATE_FILE,
    KEY_FILE,
    REVOKED_FILE,
    is_revoked,
    read_revoked,
)


class FarmSecurity(Security):  # type: ignore[misc] # Dask has no type information
    """What Dask is told of a folder of certificates, and what Dask has no words for.

    Args:
        only: the one certificate (DER) that may be at the other end; None for all of the authority that are not on the
            folder's list of revoked ones.

    Raises:
        FarmError: the list cannot be used.
    """

    def __init__(self, folder: Path, only: bytes | None = None) -> None:
        files = {"cert": str(folder / CERTIFICATE_FILE), "key": str(folder / KEY_FILE)}
        roles = {
            f"tls_{role}_{what}": path for role in ("client", "scheduler", "worker") for what, path in files.items()
        }
        super().__init__(
            require_encryption=True,
            tls_ca_file=str(folder / CA_FILE) if only is None else ssl.DER_cert_to_PEM_cert(only),
            # In TLS 1.2 who was let in once could resume its session although it has been revoked.
            tls_min_version=ssl.TLSVersion.TLSv1_3,
            **roles,
        )
        self._folder = folder
        self._only = only
        self._revoked: x509.CertificateRevocationList | None = None
        self._seen: tuple[int, int, int] | None = None
        self._contexts: list[ssl.SSLContext] = []
        self.refresh()

    def get_connection_args(self, role: str) -> dict[str, Any]:
        """Called by Dask for the connections that it makes."""
        arguments: dict[str, Any] = super().get_connection_args(role)
        self._narrow(arguments["ssl_context"])
        return arguments

    def get_listen_args(self, role: str) -> dict[str, Any]:
        """Called by Dask for the connections that it takes."""
        arguments: dict[str, Any] = super().get_listen_args(role)
        context: ssl.SSLContext = arguments["ssl_context"]
        # The other way to resume a session; nobody here does.
        context.num_tickets = 0
        self._narrow(context)
        return arguments

    def _narrow(self, context: ssl.SSLContext) -> None:
        if self._only is not None:
            # Without this, only an authority's certificate can be where trust begins.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            return
        self._contexts.append(context)
        if self._revoked is not None:
            refuse_revoked(context, self._folder)

    def refresh(self) -> bool:
        """Read the list of revoked certificates where it has changed since; returns whether it has.

        Raises:
            FarmError: it cannot be used now, which is raised once; what was read before stays in force.
        """
        seen = _version(self._folder / REVOKED_FILE)
        if self._only is not None or seen == self._seen:
            return False
        self._seen = seen
        revoked = read_revoked(self._folder)
        if revoked is None:
            return False  # a list that is taken away takes nothing back
        for context in self._contexts:
            refuse_revoked(context, self._folder)
        self._revoked = revoked
        return True

    def is_revoked(self, certificate: x509.Certificate) -> bool:
        """Whether a certificate is on the list, as it was last read."""
        return self._revoked is not None and is_revoked(certificate, self._revoked)


def refuse_revoked(context: ssl.SSLContext, folder: Path) -> None:
    """Have the handshakes of a context refuse who is on a folder's list; of several lists the newest counts.

    Raises:
        OSError: the list cannot be read.
    """
    context.load_verify_locations(cafile=str(folder / REVOKED_FILE))
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _version(path: Path) -> tuple[int, int, int] | None:
    """What changes when a file is replaced or written to."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
