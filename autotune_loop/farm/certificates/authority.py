"""The certificates of a farm: an authority of its own, and one certificate for each host and user.

certipy and trustme do not do this: a user's certificate must not pose as a server, and none may outlive the authority.
"""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import re
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from halide_autotune.autotune_loop.farm.certificates.certificate_files import (
    CA_FILE,
    CA_KEY_FILE,
    CERTIFICATE_FILE,
    KEY_FILE,
    check_time,
    is_revoked,
    read_certificate,
    read_key,
    read_revoked,
    write_key,
)
from halide_autotune.targets.errors import FarmError, UsageError
from halide_autotune.targets.process.atomic_write import write_atomically

_AUTHORITY = "halide-autotune-sdk farm"
_HOSTS, _USERS = "hosts", "users"
# Certificates that were made anew: they are good until they expire or are revoked.
_REPLACED_FILE = "replaced.pem"
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", re.ASCII)
_CA_LIFE = datetime.timedelta(days=5 * 365)
_LIFE = datetime.timedelta(days=2 * 365)
# Clocks of a lab may differ, or be set while a farm works, by an hour where a time zone was wrong.
_BEFORE_NOW = datetime.timedelta(days=1)


@dataclass(frozen=True)
class FarmCertificate:
    """One certificate of a farm.

    Attributes:
        role: 'authority', 'host' (scheduler or worker) or 'user' (client only).
        names: the host names and addresses that it is valid for.
        folder: where it lies, with its key.
        expires: in UTC.
        is_new: it was made by this call.
        is_revoked: it is on the list of revoked certificates in that folder.
    """

    name: str
    role: str
    names: tuple[str, ...]
    folder: Path
    expires: datetime.datetime
    is_new: bool = False
    is_revoked: bool = False

    @property
    def days_left(self) -> int:
        """Whole days until it expires; negative after that."""
        return (self.expires - datetime.datetime.now(datetime.UTC)).days


def make_certificates(
    folder: Path, hosts: Sequence[str], users: Sequence[str], *, renew: bool = False
) -> tuple[FarmCertificate, ...]:
    """Make what is missing: the authority, this machine's certificate, and one for each host and user.

    What is there stays as it is. A host's or user's folder, `hosts/NAME` or `users/NAME`, is what goes to that machine.

    Args:
        hosts: a name or address each, or several of one host with commas between; the first names the folder.
        renew: make the certificates of these hosts and users again (of this machine if there are none).

    Returns:
        All certificates of the folder, the authority first.

    Raises:
        UsageError: a name is not valid.
        FarmError: the folder cannot be written, or has certificates without the authority's key.
    """
    wanted = [(folder / _HOSTS / names[0], names, True) for names in map(_host_names, hosts)]
    wanted += [(folder / _USERS / name, [name], False) for name in map(_user_name, users)]
    new: set[Path] = set()
    try:
        if not (folder / CA_FILE).exists():
            _make_authority(folder)
            new.add(folder / CA_FILE)
        elif not wanted and not renew:
            return tuple(_read_all(folder, new))
        ca, ca_key = read_authority(folder)
        if not (folder / CERTIFICATE_FILE).exists() or (renew and not wanted):
            wanted.insert(0, (folder, _own_names(), True))
        for place, names, is_host in wanted:
            if renew or place == folder or not (place / CERTIFICATE_FILE).exists():
                _keep_replaced(folder, place / CERTIFICATE_FILE)
                _make_certificate(place, names, ca, ca_key, is_host=is_host)
                new.add(place / CERTIFICATE_FILE)
    except OSError as error:
        raise FarmError(
            f"Cannot write the certificates: {error.filename or folder}: {error.strerror}.",
            next_step="Give another --folder.",
        ) from error
    return tuple(_read_all(folder, new))


def _own_names() -> list[str]:
    name = socket.gethostname()
    return [name if _NAME.fullmatch(name) else "this-host", "localhost", "127.0.0.1", "::1"]


def _host_names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if not (_NAME.fullmatch(name) or _ip_address(name)):
            raise UsageError(
                f"{name[:80]!r} is not a host name or an address.", next_step="Use, for example, lab1,192.168.1.5."
            )
    return names


def _user_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise UsageError(
            f"{text[:80]!r} is not a valid name for a user.",
            next_step="Use letters, digits, dots, underscores and dashes, for example ana.",
        )
    return text


def _ip_address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return None
    # Anything may follow a '%'.
    return None if "%" in name else address


def _make_authority(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    name = _subject(_AUTHORITY)
    builder = _builder(name, name, key, datetime.datetime.now(datetime.UTC) + _CA_LIFE, is_authority=True)
    # The key first: the certificate says that everything is there.
    write_key(folder / CA_KEY_FILE, key)
    write_atomically(folder / CA_FILE, builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))


def read_authority(folder: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """Read the certificate and the key of a farm's authority.

    Raises:
        FarmError: one is missing, invalid or expired, or they do not belong together.
    """
    if not (folder / CA_FILE).exists():
        raise FarmError(
            f"{folder} has no certificates of a farm.",
            next_step="Give the folder of the farm's authority with --folder.",
        )
    if not (folder / CA_KEY_FILE).exists():
        raise FarmError(
            f"{folder} has a farm's certificates, but not the key of its authority ({CA_KEY_FILE}).",
            next_step="Make certificates on the machine where the farm's first ones were made.",
        )
    ca, key = read_certificate(folder / CA_FILE), read_key(folder / CA_KEY_FILE)
    if ca.public_key() != key.public_key():
        raise FarmError(
            f"{folder / CA_KEY_FILE} is not the key of {folder / CA_FILE}.",
            next_step="Restore the right key, or start again with another --folder.",
        )
    check_time(folder / CA_FILE, ca)
    return ca, key


def _make_certificate(
    folder: Path, names: Sequence[str], ca: x509.Certificate, ca_key: ec.EllipticCurvePrivateKey, *, is_host: bool
) -> None:
    """Write a new key, its certificate and a copy of the authority's certificate into the folder."""
    key = ec.generate_private_key(ec.SECP256R1())
    expires = min(datetime.datetime.now(datetime.UTC) + _LIFE, ca.not_valid_after_utc)
    # A user's certificate cannot pose as a scheduler or worker.
    purposes = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if is_host else [])]
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    builder = (
        _builder(_subject(names[0]), ca.subject, key, expires, is_authority=False)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(issuer, critical=False)
    )
    if is_host:
        addresses = {name: _ip_address(name) for name in names}
        places = [x509.DNSName(name) if ip is None else x509.IPAddress(ip) for name, ip in addresses.items()]
        builder = builder.add_extension(x509.SubjectAlternativeName(places), critical=False)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_key(folder / KEY_FILE, key)
    write_atomically(folder / CA_FILE, ca.public_bytes(Encoding.PEM))
    write_atomically(folder / CERTIFICATE_FILE, builder.sign(ca_key, hashes.SHA256()).public_bytes(Encoding.PEM))


def _keep_replaced(folder: Path, path: Path) -> None:
    """Keep a certificate that is made anew, so that it can be revoked by its name."""
    if path.exists():
        kept = folder / _REPLACED_FILE
        before = kept.read_bytes() if kept.exists() else b""
        with contextlib.suppress(FarmError):  # one that cannot be read lets nobody in
            write_atomically(kept, before + read_certificate(path).public_bytes(Encoding.PEM))


def certificates_made(folder: Path) -> list[x509.Certificate]:
    """Every host's and user's certificate that was made in a folder, those that were made anew since included.

    Raises:
        FarmError: a file cannot be read.
    """
    kept = folder / _REPLACED_FILE
    try:
        made = x509.load_pem_x509_certificates(kept.read_bytes()) if kept.exists() else []
    except (OSError, ValueError) as error:
        raise FarmError(f"Cannot read {kept}: {error}.", next_step="Restore or delete it.") from error
    return made + [read_certificate(path) for path in _files(folder)]


def name_of(certificate: x509.Certificate) -> str:
    """What a certificate calls who shows it."""
    common = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(common[0].value) if common else ""


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    expires: datetime.datetime,
    *,
    is_authority: bool,
) -> x509.CertificateBuilder:
    """Return what all certificates have: an authority's signs others, all others' keys sign handshakes."""
    usage = x509.KeyUsage(
        digital_signature=not is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )
    constraints = x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.datetime.now(datetime.UTC) - _BEFORE_NOW)
        .not_valid_after(expires)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(constraints, critical=True)
        .add_extension(usage, critical=True)
    )


def _files(folder: Path) -> Iterator[Path]:
    """The certificates of hosts and users in a folder, its own first."""
    if (folder / CERTIFICATE_FILE).exists():
        yield folder / CERTIFICATE_FILE
    for kind in (_HOSTS, _USERS):
        yield from sorted((folder / kind).glob(f"*/{CERTIFICATE_FILE}"))


def _read_all(folder: Path, new: set[Path]) -> Iterator[FarmCertificate]:
    revoked = read_revoked(folder)
    for path in (folder / CA_FILE, *_files(folder)):
        certificate = read_certificate(path)
        try:
            extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
            names = tuple(str(one.value) for one in extension.value)
        except x509.ExtensionNotFound:
            names = ()
        yield FarmCertificate(
            name=name_of(certificate),
            role="authority" if path.name == CA_FILE else "host" if names else "user",
            names=names,
            folder=path.parent,
            expires=certificate.not_valid_after_utc,
            is_new=path in new,
            is_revoked=revoked is not None and is_revoked(certificate, revoked),
        )
