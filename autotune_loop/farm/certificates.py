"""The certificates of a farm: an authority of its own, and one certificate for each host and user."""

from __future__ import annotations

import datetime
import re
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune_loop.farm.authority import Authority, ip_address, make_authority
from autotune_loop.farm.certificate_files import CA_FILE, CERTIFICATE_FILE, read_certificate
from targets.errors import FarmError, UsageError

_HOSTS, _USERS = "hosts", "users"
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", re.ASCII)


@dataclass(frozen=True)
class FarmCertificate:
    """One certificate of a farm.

    Attributes:
        role: 'authority', 'host' (scheduler or worker) or 'user' (client only).
        names: host names and addresses that it is made out for.
        folder: where it lies, with its key.
        expires: in UTC.
        is_new: it was made by this call.
    """

    name: str
    role: str
    names: tuple[str, ...]
    folder: Path
    expires: datetime.datetime
    is_new: bool = False

    @property
    def days_left(self) -> int:
        """Whole days until it expires; negative when it has."""
        return (self.expires - datetime.datetime.now(datetime.UTC)).days


def make_certificates(
    folder: Path, hosts: Sequence[str], users: Sequence[str], *, renew: bool = False
) -> tuple[FarmCertificate, ...]:
    """Make what is missing: the authority, this machine's certificate, and one for each host and user.

    What is there stays as it is. A host's or user's folder, `hosts/NAME` or `users/NAME`, is what goes to that machine.

    Args:
        hosts: a name or address each, or several of one host with commas between; the first names the folder.
        renew: make the certificates of the hosts and users that are named anew (with none named: this machine's).

    Returns:
        All certificates of the folder, the authority first.

    Raises:
        UsageError: a name that cannot be one.
        FarmError: the folder cannot be written, or has certificates without the authority's key.
    """
    wanted = [(_HOSTS, *_host_names(host)) for host in hosts] + [(_USERS, _user_name(user)) for user in users]
    new: set[Path] = set()
    try:
        if not (folder / CA_FILE).exists():
            _make_folder(folder)
            make_authority(folder)
            new.add(folder / CA_FILE)
        elif not wanted and not renew:
            return read_certificates(folder)
        authority = Authority.read(folder)
        wanted_places = [(folder / kind / names[0], kind, names) for kind, *names in wanted]
        if not (folder / CERTIFICATE_FILE).exists() or (renew and not wanted_places):
            wanted_places.insert(0, (folder, _HOSTS, _own_names()))
        for place, kind, names in wanted_places:
            if renew or place == folder or not (place / CERTIFICATE_FILE).exists():
                _make_folder(place)
                authority.make_certificate(place, names, is_host=kind == _HOSTS)
                new.add(place / CERTIFICATE_FILE)
    except OSError as error:
        raise FarmError(
            f"The certificates cannot be written: {error.filename or folder}: {error.strerror}.",
            next_step="Give another --folder.",
        ) from error
    return tuple(_read_all(folder, frozenset(new)))


def read_certificates(folder: Path) -> tuple[FarmCertificate, ...]:
    """All certificates of a folder, the authority first.

    Raises:
        FarmError: there are none, or one cannot be read.
    """
    return tuple(_read_all(folder, frozenset()))


def _own_names() -> list[str]:
    name = socket.gethostname()
    return [name if _NAME.fullmatch(name) else "this-host", "localhost", "127.0.0.1", "::1"]


def _host_names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if not (_NAME.fullmatch(name) or ip_address(name)):
            raise UsageError(
                f"{name[:80]!r} is no host name and no address.", next_step="Such as lab1, or lab1,192.168.1.5."
            )
    return names


def _user_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise UsageError(
            f"{text[:80]!r} cannot name a user: letters, digits, '.', '_' and '-' can.", next_step="Such as ana."
        )
    return text


def _make_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _read_all(folder: Path, new: frozenset[Path]) -> Iterator[FarmCertificate]:
    yield _described(folder, CA_FILE, "authority", new)
    if (folder / CERTIFICATE_FILE).exists():
        yield _described(folder, CERTIFICATE_FILE, "", new)
    for kind in (_HOSTS, _USERS):
        for path in sorted((folder / kind).glob(f"*/{CERTIFICATE_FILE}")):
            yield _described(path.parent, CERTIFICATE_FILE, "", new)


def _described(folder: Path, file: str, role: str, new: frozenset[Path]) -> FarmCertificate:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    certificate = read_certificate(folder / file)
    common = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        names = tuple(str(one.value) for one in extension.value)
    except x509.ExtensionNotFound:
        names = ()
    return FarmCertificate(
        name=str(common[0].value) if common else "",
        role=role or ("host" if names else "user"),
        names=names,
        folder=folder,
        expires=certificate.not_valid_after_utc,
        is_new=folder / file in new,
    )
