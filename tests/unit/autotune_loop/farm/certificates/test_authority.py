"""A farm's certificates: made once, kept, checked before they are used, and accepted or refused by real TLS."""

from __future__ import annotations

import contextlib
import datetime
import shutil
import socket
import ssl
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.autotune_loop.farm.address import FarmAddress
from halide_autotune.autotune_loop.farm.certificates import authority as certificates
from halide_autotune.autotune_loop.farm.certificates.authority import FarmCertificate, make_certificates
from halide_autotune.autotune_loop.farm.certificates.certificate_files import (
    check_host_certificate,
    is_of_host,
    read_certificate,
)
from halide_autotune.autotune_loop.farm.probe_scheduler import probe_scheduler
from halide_autotune.targets.errors import FarmError, UsageError


def mixed(folder: Path, certificates: Path, others: Path, *names: str) -> Path:
    """A folder of certificates with these files of another one."""
    folder.mkdir()
    for name in ("ca.pem", "certificate.pem", "key.pem"):
        shutil.copy((others if name in names else certificates) / name, folder)
    return folder


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates") / "farm"
    make_certificates(folder, ["lab1,192.168.1.5", "fe80::1"], ["ana"])
    return folder


@pytest.fixture(scope="module")
def other_farm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates") / "other"
    make_certificates(folder, [], [])
    return folder


def expired(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    """A farm whose scheduler's certificate was over before now, and user ana's is not."""
    make_certificates(folder, [], ["ana"])
    monkeypatch.setattr(certificates, "_LIFE", datetime.timedelta(minutes=1) - certificates._BEFORE_NOW)
    make_certificates(folder, [], [], renew=True)
    return folder


def by_name(found: tuple[FarmCertificate, ...]) -> dict[str, FarmCertificate]:
    return {one.name: one for one in found}


def test_what_is_made_is_kept_and_added_to(farm: Path) -> None:
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in farm.rglob("*key.pem"))
    before = {path: path.read_bytes() for path in farm.rglob("*.pem")}
    assert not list(farm.glob("*/*/ca-key.pem")), "only the farm's own folder can sign"
    again = make_certificates(farm, ["lab1", "lab2"], ["ana", "bob"])
    assert {one.name for one in again if one.is_new} == {"lab2", "bob"}
    assert all(path.read_bytes() == content for path, content in before.items()), "nothing is overwritten"
    found = by_name(make_certificates(farm, [], []))
    assert found["lab1"].names == ("lab1", "192.168.1.5") and found["fe80::1"].names == ("fe80::1",)
    assert found["ana"].role == "user" and found["ana"].names == () and found["lab1"].role == "host"
    assert 700 < found["ana"].days_left < 731 < found["halide-autotune-sdk farm"].days_left
    renewed = by_name(make_certificates(farm, ["lab2"], [], renew=True))
    assert {name for name, one in renewed.items() if one.is_new} == {"lab2"}
    assert renewed["lab2"].expires >= found["lab2"].expires


def test_a_key_of_another_authority_signs_nothing(farm: Path, other_farm: Path, tmp_path: Path) -> None:
    folder = tmp_path / "farm"
    shutil.copytree(farm, folder)
    shutil.copy(other_farm / "ca-key.pem", folder)
    with pytest.raises(FarmError, match=r"ca-key\.pem is not the key of .*ca\.pem"):
        make_certificates(folder, ["lab9"], [])
    assert not (folder / "hosts" / "lab9").exists()


def test_no_certificate_outlives_its_authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "_CA_LIFE", datetime.timedelta(days=30))
    authority, *others = make_certificates(tmp_path / "farm", ["lab1"], ["ana"])
    assert authority.role == "authority" and authority.days_left < 31
    assert {one.name for one in others} >= {"lab1", "ana"}
    assert all(one.expires == authority.expires for one in others)


@given(st.text(max_size=70))
def test_no_name_leads_out_of_the_folder(farm: Path, name: str) -> None:
    before = set(farm.parent.iterdir())
    for hosts, users in ([name], []), ([], [name]):
        try:
            make_certificates(farm, hosts, users)
        except UsageError:
            continue
    assert set(farm.parent.iterdir()) == before
    assert all(path.parent.parent == farm for path in farm.rglob("*/*") if path.is_dir())


def test_a_worker_cannot_make_workers(farm: Path) -> None:
    assert [one.name for one in make_certificates(farm / "hosts" / "lab1", [], [])][1:] == ["lab1"], "but can look"
    with pytest.raises(FarmError, match="not the key of its authority"):
        make_certificates(farm / "hosts" / "lab1", ["lab3"], [])


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[socket.socket], None]], str]]:
    """Answers every connection to a loopback port with a function; gives host:port."""
    listeners: list[socket.socket] = []

    def start(answer: Callable[[socket.socket], None]) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection, contextlib.suppress(OSError):  # what TLS makes of a stranger
                    answer(connection)

        threading.Thread(target=accept, daemon=True).start()
        return f"127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def as_dask(own: Path) -> Callable[[socket.socket], None]:
    """The server's side as Dask has it: both ends show a certificate; then the first words of a Dask peer."""
    context = FarmAddress("tls://127.0.0.1:1", own).security().get_listen_args("scheduler")["ssl_context"]

    def answer(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            secure.sendall(b"\x01\x00 {'compression': None, 'pickle-protocol': 5}")
            secure.recv(1)

    return answer


def test_strangers_and_expired_certificates_are_told_apart(
    farm: Path,
    other_farm: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    serve: Callable[[Callable[[socket.socket], None]], str],
) -> None:
    scheduler = f"tls://{serve(as_dask(farm))}"
    probe_scheduler(FarmAddress(scheduler, farm))
    probe_scheduler(FarmAddress(scheduler, farm / "users" / "ana"))
    with pytest.raises(FarmError, match="not of this farm: another authority has made it"):
        probe_scheduler(FarmAddress(scheduler, other_farm))
    # A user's certificate is no scheduler's.
    with pytest.raises(FarmError, match="not of this farm"):
        probe_scheduler(FarmAddress(f"tls://{serve(as_dask(farm / 'users' / 'ana'))}", farm))
    stranger = mixed(tmp_path / "stranger", farm, other_farm, "certificate.pem", "key.pem")
    with pytest.raises(FarmError, match="was not made by the authority"):
        probe_scheduler(FarmAddress(scheduler, stranger))
    with pytest.raises(FarmError, match="is not the key of"):
        probe_scheduler(FarmAddress(scheduler, mixed(tmp_path / "keyless", farm, other_farm, "key.pem")))
    # What only the other side can tell: it trusts another authority than we do.
    two_faced = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(other_farm / "ca.pem"))
    two_faced.load_cert_chain(farm / "certificate.pem", farm / "key.pem")
    two_faced.verify_mode = ssl.CERT_REQUIRED

    def refuse(connection: socket.socket) -> None:
        with two_faced.wrap_socket(connection, server_side=True):
            pass

    refusing = serve(refuse)
    with pytest.raises(FarmError, match=r"refuses the certificate .*certificate.pem: "):
        probe_scheduler(FarmAddress(f"tls://{refusing}", farm))
    old = expired(monkeypatch, tmp_path / "old")
    with pytest.raises(FarmError, match=r"expired on .* --renew"):
        probe_scheduler(FarmAddress(scheduler, old))
    with monkeypatch.context() as unchecked:
        unchecked.setattr(
            "halide_autotune.autotune_loop.farm.certificates.certificate_files.check_certificate", lambda *paths: None
        )
        expiring = f"tls://{serve(as_dask(old))}"
    with pytest.raises(FarmError, match="The certificate of the scheduler at .* has expired"):
        probe_scheduler(FarmAddress(expiring, old / "users" / "ana"))


def test_what_is_no_scheduler_is_said_to_be_none(
    farm: Path, serve: Callable[[Callable[[socket.socket], None]], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = threading.Event()

    def ssh(connection: socket.socket) -> None:
        connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

    def hold(connection: socket.socket) -> None:
        asked.wait(60)

    for scheme, own, expected in ("tcp", None, "is not a farm's scheduler"), ("tls", farm, "does not speak TLS"):
        with pytest.raises(FarmError, match=expected):
            probe_scheduler(FarmAddress(f"{scheme}://{serve(ssh)}", own))
    with monkeypatch.context() as impatient:
        impatient.setattr("halide_autotune.autotune_loop.farm.probe_scheduler._ANSWER_LIMIT_S", 0.3)
        with pytest.raises(FarmError, match="sends nothing"):
            probe_scheduler(FarmAddress(f"tcp://{serve(hold)}"))
    asked.set()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # a port that is bound and does not listen refuses, and is nobody else's
        with pytest.raises(FarmError, match="No scheduler listens at"):
            probe_scheduler(FarmAddress(f"tls://127.0.0.1:{unused.getsockname()[1]}", farm))


def test_only_a_host_serves(farm: Path, tmp_path: Path) -> None:
    check_host_certificate(farm / "hosts" / "lab1", "worker")
    check_host_certificate(farm, "scheduler")
    with pytest.raises(FarmError, match="is a user's certificate, and a worker needs a host's") as told:
        check_host_certificate(farm / "users" / "ana", "worker")
    assert "sdk farm certificates --host NAME" in told.value.next_step
    assert not is_of_host(read_certificate(farm / "ca.pem")), "an authority's certificate says of no purpose"
