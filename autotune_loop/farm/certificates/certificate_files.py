"""Certificates and keys as PEM files: written, read, and checked before they are used."""

from __future__ import annotations

import datetime
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID

from halide_autotune.targets.errors import FarmError, os_error_as
from halide_autotune.targets.process.atomic_write import write_atomically

# The same names on every machine: a host's or user's folder is copied there as it is.
CA_FILE = "ca.pem"
CERTIFICATE_FILE = "certificate.pem"
KEY_FILE = "key.pem"
CA_KEY_FILE = "ca-key.pem"
# The list of revoked certificates, signed by the authority; it is missing as long as none is revoked.
REVOKED_FILE = "revoked.pem"
_LARGEST_FILE_BYTES = 64 * 1024
_LARGEST_LIST_BYTES = 4 * 2**20
_COPY_IT = "Copy the whole folder that `sdk farm certificates` made for this machine."
_GET_IT = (
    "Make it with `sdk farm certificates` on the machine that keeps the farm's authority, and copy this machine's files"
    " here. A run without the farm: `--scheduler none`."
)
_MAKE_IT = "Make it with `sdk farm certificates`."
RENEW_IT = (
    "On the machine with the farm's authority run `sdk farm certificates --host NAME --renew` (`--user NAME` for a"
    " user's), then copy the new files to where the old ones are."
)


class RevokedError(FarmError):
    """The certificate that was shown is on the farm's list of revoked ones."""


def check_certificate(folder: Path) -> None:
    """Check a folder's files before they are used, because a failed handshake says little.

    Raises:
        FarmError: a file is missing or invalid; the certificate is another authority's, has expired, or is on the
            folder's own list of revoked ones.
    """
    ca_file, certificate_file, key_file = folder / CA_FILE, folder / CERTIFICATE_FILE, folder / KEY_FILE
    ca, certificate, key = read_certificate(ca_file), read_certificate(certificate_file), read_key(key_file)
    try:
        certificate.verify_directly_issued_by(ca)
    except (InvalidSignature, ValueError, TypeError) as error:
        raise FarmError(f"{certificate_file} was not made by the authority {ca_file}.", next_step=_COPY_IT) from error
    if certificate.public_key() != key.public_key():
        raise FarmError(f"{key_file} is not the key of {certificate_file}.", next_step=_COPY_IT)
    check_time(ca_file, ca)
    check_time(certificate_file, certificate)
    revoked = read_revoked(folder)
    if revoked is not None and is_revoked(certificate, revoked):
        raise RevokedError(
            f"The certificate {certificate_file} was revoked.",
            next_step=RENEW_IT,
        )


def check_host_certificate(folder: Path, service: str) -> None:
    """As `check_certificate`, for a service of the farm: it needs a host's certificate, because others connect to it.

    Args:
        service: what it is, such as 'worker'.

    Raises:
        FarmError: as `check_certificate`; or the certificate is a user's.
    """
    check_certificate(folder)
    if not is_of_host(read_certificate(folder / CERTIFICATE_FILE)):
        raise FarmError(
            f"{folder / CERTIFICATE_FILE} is a user's certificate, and a {service} needs a host's.",
            next_step="Make one with `sdk farm certificates --host NAME`, and copy its folder here.",
        )


def is_of_host(certificate: x509.Certificate) -> bool:
    """Whether a certificate is a host's, and not a user's: others may connect to who shows it."""
    try:
        purposes = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return False
    return ExtendedKeyUsageOID.SERVER_AUTH in purposes


def check_time(path: Path, certificate: x509.Certificate) -> None:
    """Refuse a certificate that is not valid now.

    Raises:
        FarmError: it has expired, or is not valid yet.
    """
    now = datetime.datetime.now(datetime.UTC)
    if certificate.not_valid_after_utc < now:
        raise FarmError(
            f"The certificate {path} expired on {certificate.not_valid_after_utc:%Y-%m-%d}.",
            next_step=RENEW_IT,
        )
    if certificate.not_valid_before_utc > now:
        raise FarmError(
            f"The certificate {path} is not valid before {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC.",
            next_step="Set this machine's clock.",
        )


def write_key(path: Path, key: EllipticCurvePrivateKey) -> None:
    """Write a key; only this user can read it.

    Raises:
        OSError: it cannot be written.
    """
    write_atomically(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), mode=0o600)


def read_certificate(path: Path) -> x509.Certificate:
    """Read a certificate.

    Raises:
        FarmError: it is missing, cannot be read, or is invalid.
    """
    try:
        return x509.load_pem_x509_certificate(_read(path))
    except ValueError as error:
        raise FarmError(f"{path} is not a certificate in PEM format.", next_step=_MAKE_IT) from error


def read_revoked(folder: Path) -> x509.CertificateRevocationList | None:
    """Read a folder's list of revoked certificates; None where there is none.

    Raises:
        FarmError: it cannot be read, or the folder's authority has not signed it.
    """
    path = folder / REVOKED_FILE
    if not path.exists():
        return None
    copy_it = "Copy the file that `sdk farm revoke` wrote where the farm's authority is kept."
    try:
        revoked = x509.load_pem_x509_crl(_read(path, _LARGEST_LIST_BYTES))
    except ValueError as error:
        raise FarmError(f"{path} is not a list of revoked certificates in PEM format.", next_step=copy_it) from error
    authority = read_certificate(folder / CA_FILE).public_key()
    # Anybody else's list could let a revoked certificate in, or keep everybody out.
    if not isinstance(authority, EllipticCurvePublicKey) or not revoked.is_signature_valid(authority):
        raise FarmError(f"{path} was not signed by the authority {folder / CA_FILE}.", next_step=copy_it)
    return revoked


def is_revoked(certificate: x509.Certificate, revoked: x509.CertificateRevocationList) -> bool:
    """Whether a certificate is on the list."""
    return revoked.get_revoked_certificate_by_serial_number(certificate.serial_number) is not None


def read_key(path: Path) -> EllipticCurvePrivateKey:
    """Read a key.

    Raises:
        FarmError: it is missing, cannot be read, or is not the key of an elliptic curve.
    """
    try:
        key = load_pem_private_key(_read(path), password=None)
    except (ValueError, TypeError) as error:
        raise FarmError(f"{path} is not a key in PEM format without a password.", next_step=_MAKE_IT) from error
    if not isinstance(key, EllipticCurvePrivateKey):
        raise FarmError(f"{path} is not an elliptic-curve key.", next_step=_MAKE_IT)
    return key


def _read(path: Path, most_bytes: int = _LARGEST_FILE_BYTES) -> bytes:
    if not path.exists():
        raise FarmError(f"There is no {path}.", next_step=_GET_IT)
    with os_error_as(FarmError, f"Cannot read {path}", next_step="Correct its permissions."), path.open("rb") as file:
        return file.read(most_bytes)
