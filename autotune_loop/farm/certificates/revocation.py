"""Certificates are revoked by a list that the authority signs, and that a scheduler reads while it runs."""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding

from halide_autotune.autotune_loop.farm.certificates.authority import certificates_made, name_of, read_authority
from halide_autotune.autotune_loop.farm.certificates.certificate_files import (
    REVOKED_FILE,
    is_of_host,
    is_revoked,
    read_certificate,
    read_revoked,
)
from halide_autotune.targets.errors import FarmError, UsageError, os_error_as
from halide_autotune.targets.process.atomic_write import write_atomically
from halide_autotune.targets.values.checks import nearest_hint

# Clocks of a lab may differ a little, and a list of the future is no list.
_BEFORE_NOW = datetime.timedelta(days=1)
# OpenSSL takes the newest of several lists, and knows only whole seconds.
_LATER = datetime.timedelta(seconds=1)


@dataclass(frozen=True)
class RevokedCertificate:
    """A certificate on the list.

    Attributes:
        role: 'host' or 'user'.
        serial_number: hexadecimal.
        expires: in UTC.
        is_new: it was not on the list before.
    """

    name: str
    role: str
    serial_number: str
    expires: datetime.datetime
    is_new: bool


def revoke_certificates(folder: Path, wanted: Sequence[str]) -> tuple[RevokedCertificate, ...]:
    """Put certificates on a farm's list of revoked ones; a scheduler that has the new list lets them in no more.

    Args:
        folder: that of the authority.
        wanted: names of hosts and users, for every certificate that was ever made for them here; or files.

    Returns:
        The certificates that were asked for.

    Raises:
        UsageError: there is no such host or user, or both; or a file is the authority's own.
        FarmError: a file is not a certificate of this farm, the authority's key is not here, or the list cannot be
            written.
    """
    ca, ca_key = read_authority(folder)
    asked = {one.serial_number: one for text in wanted for one in _meant(folder, ca, text)}
    before = read_revoked(folder)
    now = datetime.datetime.now(datetime.UTC)
    # Strictly later than the list before, however soon it follows.
    since = now - _BEFORE_NOW if before is None else max(now - _BEFORE_NOW, before.last_update_utc + _LATER)
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(ca.subject)
        .last_update(since)
        .next_update(ca.not_valid_after_utc)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .add_extension(x509.CRLNumber(_number(before) + 1), critical=False)
    )
    for entry in before or ():
        builder = builder.add_revoked_certificate(entry)
    new = {serial for serial, one in asked.items() if before is None or not is_revoked(one, before)}
    for serial in sorted(new):
        entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now).build()
        builder = builder.add_revoked_certificate(entry)
    if new:
        content = builder.sign(ca_key, hashes.SHA256()).public_bytes(Encoding.PEM)
        with os_error_as(FarmError, f"Cannot write {folder / REVOKED_FILE}", next_step="Correct its permissions."):
            write_atomically(folder / REVOKED_FILE, content)
    return tuple(_described(one, is_new=serial in new) for serial, one in asked.items())


def _meant(folder: Path, ca: x509.Certificate, text: str) -> list[x509.Certificate]:
    if os.sep in text or text.endswith(".pem"):
        return [_of_file(Path(text), ca)]
    made = certificates_made(folder)
    named = [one for one in made if name_of(one) == text]
    if not named:
        raise UsageError(
            f"No host or user of {folder} is called {text[:80]!r}{nearest_hint(text, map(name_of, made))}.",
            next_step="`sdk farm certificates` shows them; or give the file of the certificate.",
        )
    if len({is_of_host(one) for one in named}) > 1:
        raise UsageError(
            f"A host and a user are called {text}.",
            next_step=f"Give the file: {folder}/hosts/{text}/certificate.pem, or the one below users.",
        )
    return named


def _of_file(path: Path, ca: x509.Certificate) -> x509.Certificate:
    certificate = read_certificate(path)
    if certificate == ca:
        raise UsageError(
            f"{path} is the authority's own certificate, which every other one rests on.",
            next_step="If its key was lost, make a new farm: `sdk farm certificates --folder DIR`.",
        )
    try:
        certificate.verify_directly_issued_by(ca)
    except (InvalidSignature, ValueError, TypeError) as error:
        raise FarmError(
            f"{path} was not made by this farm's authority.",
            next_step="Revoke it in the folder of the farm that it is of.",
        ) from error
    return certificate


def _number(revoked: x509.CertificateRevocationList | None) -> int:
    if revoked is None:
        return 0
    try:
        return revoked.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
    except x509.ExtensionNotFound:
        return 0


def _described(certificate: x509.Certificate, *, is_new: bool) -> RevokedCertificate:
    return RevokedCertificate(
        name=name_of(certificate),
        role="host" if is_of_host(certificate) else "user",
        serial_number=f"{certificate.serial_number:x}",
        expires=certificate.not_valid_after_utc,
        is_new=is_new,
    )
