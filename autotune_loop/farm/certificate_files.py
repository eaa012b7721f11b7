"""Certificates and keys as PEM files: written, read with a message, checked before they are used."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from targets.errors import FarmError
from targets.process.atomic_write import write_atomically

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

# The same names on every machine: a worker's folder is copied there as it is.
CA_FILE = "ca.pem"
CERTIFICATE_FILE = "certificate.pem"
KEY_FILE = "key.pem"
CA_KEY_FILE = "ca-key.pem"
_LARGEST_FILE_BYTES = 64 * 1024
_COPY_IT = "Copy the whole folder that `sdk farm certificates` made for this machine."


def check_certificate(ca_file: Path, certificate_file: Path, key_file: Path) -> None:
    """Look at the files before they are used, since a handshake that fails says little.

    Raises:
        FarmError: a file is missing or is not what it should be; the certificate is another authority's or has expired.
    """
    from cryptography.exceptions import InvalidSignature

    ca, certificate, key = read_certificate(ca_file), read_certificate(certificate_file), read_key(key_file)
    try:
        certificate.verify_directly_issued_by(ca)
    except (InvalidSignature, ValueError, TypeError) as error:
        raise FarmError(
            f"{certificate_file} was not made by the authority {ca_file}.",
            next_step=_COPY_IT,
        ) from error
    if certificate.public_key() != key.public_key():
        raise FarmError(
            f"{key_file} is not the key of {certificate_file}.",
            next_step=_COPY_IT,
        )
    for path, one in ((ca_file, ca), (certificate_file, certificate)):
        check_time(path, one)


def check_time(path: Path, certificate: x509.Certificate) -> None:
    """Say so when a certificate is not valid now.

    Raises:
        FarmError: it has expired, or is not valid yet.
    """
    now = datetime.datetime.now(datetime.UTC)
    if certificate.not_valid_after_utc < now:
        raise FarmError(
            f"The certificate {path} expired on {certificate.not_valid_after_utc:%Y-%m-%d}.",
            next_step="Make it anew with `sdk farm certificates --renew` where the farm's authority is kept.",
        )
    if certificate.not_valid_before_utc > now:
        raise FarmError(
            f"The certificate {path} is valid only from {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC on.",
            next_step="Set this machine's clock.",
        )


def write_key(path: Path, key: EllipticCurvePrivateKey) -> None:
    """For the owner alone.

    Raises:
        OSError: it cannot be written.
    """
    from cryptography.hazmat.primitives import serialization

    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_atomically(path, text, mode=0o600)


def write_certificate(path: Path, certificate: x509.Certificate) -> None:
    """For everyone to read.

    Raises:
        OSError: it cannot be written.
    """
    from cryptography.hazmat.primitives import serialization

    write_atomically(path, certificate.public_bytes(serialization.Encoding.PEM))


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST_FILE_BYTES)
    except FileNotFoundError as error:
        raise FarmError(
            f"There is no {path}.",
            next_step="Make it with `sdk farm certificates`, and copy the folder it makes for this machine here.",
        ) from error
    except OSError as error:
        raise FarmError(f"{path} cannot be read: {error.strerror}.", next_step="Mend its permissions.") from error


def read_certificate(path: Path) -> x509.Certificate:
    """A certificate of a PEM file.

    Raises:
        FarmError: it is missing, cannot be read, or is none.
    """
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(_read(path))
    except ValueError as error:
        raise FarmError(
            f"{path} is not a certificate in PEM form.", next_step="Make it with `sdk farm certificates`."
        ) from error


def read_key(path: Path) -> EllipticCurvePrivateKey:
    """A key of a PEM file.

    Raises:
        FarmError: it is missing, cannot be read, or is none of an elliptic curve.
    """
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(_read(path), password=None)
    except (ValueError, TypeError) as error:
        raise FarmError(
            f"{path} is not a key in PEM form without a password.", next_step="Make it with `sdk farm certificates`."
        ) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise FarmError(f"{path} is not an elliptic-curve key.", next_step="Make it with `sdk farm certificates`.")
    return key
