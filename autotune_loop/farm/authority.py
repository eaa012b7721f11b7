"""The authority of a farm: what signs the certificates of its hosts and users."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from autotune_loop.farm.certificate_files import (
    CA_FILE,
    CA_KEY_FILE,
    CERTIFICATE_FILE,
    KEY_FILE,
    check_time,
    read_certificate,
    read_key,
    write_certificate,
    write_key,
)
from targets.errors import FarmError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

_CA_LIFE = datetime.timedelta(days=5 * 365)
_LIFE = datetime.timedelta(days=2 * 365)
# Clocks of a lab may differ a little.
_BEFORE_NOW = datetime.timedelta(hours=1)


def make_authority(folder: Path) -> None:
    """Put a new authority's certificate and key into the folder.

    Raises:
        OSError: they cannot be written.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = _subject("halide-autotune-sdk farm")
    certificate = (
        _builder(name, name, key, _CA_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    # The key first: the certificate says that all is there.
    write_key(folder / CA_KEY_FILE, key)
    write_certificate(folder / CA_FILE, certificate)


@dataclass(frozen=True)
class Authority:
    """Signs certificates."""

    certificate: x509.Certificate
    key: EllipticCurvePrivateKey

    @staticmethod
    def read(folder: Path) -> Authority:
        """The authority that is kept in the folder.

        Raises:
            FarmError: its key is not there, is another one, or it has expired.
        """
        if not (folder / CA_KEY_FILE).exists():
            raise FarmError(
                f"{folder} has a farm's certificates, but not the key of its authority ({CA_KEY_FILE}).",
                next_step="Make new ones on the machine where the farm's first certificates were made.",
            )
        authority = Authority(read_certificate(folder / CA_FILE), read_key(folder / CA_KEY_FILE))
        if authority.certificate.public_key() != authority.key.public_key():
            raise FarmError(
                f"{folder / CA_KEY_FILE} is not the key of {folder / CA_FILE}.",
                next_step="Bring the right one back, or start anew with another --folder.",
            )
        check_time(folder / CA_FILE, authority.certificate)
        return authority

    def make_certificate(self, folder: Path, names: Sequence[str], *, is_host: bool) -> None:
        """Put a new key, its certificate and a copy of the authority's certificate into the folder.

        Args:
            names: the first is the certificate's own; all are those that a host is made out for.

        Raises:
            OSError: they cannot be written.
        """
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = ec.generate_private_key(ec.SECP256R1())
        # A user's certificate cannot pose as a scheduler or worker.
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if is_host else [])]
        builder = (
            _builder(_subject(names[0]), self.certificate.subject, key, _LIFE, self.certificate.not_valid_after_utc)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()),
                critical=False,
            )
        )
        if is_host:
            builder = builder.add_extension(x509.SubjectAlternativeName(list(_alternatives(names))), critical=False)
        write_key(folder / KEY_FILE, key)
        write_certificate(folder / CA_FILE, self.certificate)
        write_certificate(folder / CERTIFICATE_FILE, builder.sign(self.key, hashes.SHA256()))


def _alternatives(names: Sequence[str]) -> Iterator[x509.GeneralName]:
    from cryptography import x509

    for name in names:
        address = ip_address(name)
        yield x509.DNSName(name) if address is None else x509.IPAddress(address)


def _subject(name: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: EllipticCurvePrivateKey,
    life: datetime.timedelta,
    latest: datetime.datetime | None = None,
) -> x509.CertificateBuilder:
    from cryptography import x509

    now = datetime.datetime.now(datetime.UTC)
    ends = now + life if latest is None else min(now + life, latest)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE_NOW)
        .not_valid_after(ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def ip_address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a text is; None where it is a name."""
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return None
    # What follows a '%' may be anything.
    return None if "%" in name else address
