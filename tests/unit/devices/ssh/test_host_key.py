from __future__ import annotations

import base64
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.remote_place import ConnectionSettings, SshAddress
from halide_autotune.devices.ssh.host_key import REVOKED, SshHostKeyCheck, fingerprint, known_host_keys
from halide_autotune.devices.ssh.revoked_keys import is_revoked
from halide_autotune.devices.ssh.route import plan_route
from tests.sshd_server import make_key

needs_keygen = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
ALGORITHMS = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "rsa-sha2-512", "rsa-sha2-256")


def blob(key_type: str, number: int = 0) -> bytes:
    return len(key_type).to_bytes(4, "big") + key_type.encode() + bytes([0, 0, 0, 1, number])


def line(names: str, key_type: str, number: int = 0, marker: str = "") -> str:
    return f"{marker} {names} {key_type} {base64.b64encode(blob(key_type, number)).decode()}\n".lstrip()


def check_for(folder: Path, known_hosts: str, host: str = "board", port: int = 2222, text: str = "") -> SshHostKeyCheck:
    file = folder / "known hosts"
    file.write_text(known_hosts)
    (folder / "config").write_text(text)
    connections = ConnectionSettings(folder / "config", file, (), folder / "adbkey", "me", folder)
    return SshHostKeyCheck(plan_route(SshAddress(host, port, "pi"), connections)[-1])


def refusal(check: SshHostKeyCheck, key_type: str = "ssh-ed25519", number: int = 0) -> DeviceTrouble:
    with pytest.raises(DeviceTrouble) as caught:
        check.check(key_type, blob(key_type, number))
    assert caught.value.kind is TroubleKind.REFUSED
    return caught.value


@pytest.mark.parametrize(
    ("known", "first"),
    [
        ("ssh-ed25519", ["ssh-ed25519"]),
        ("ecdsa-sha2-nistp384", ["ecdsa-sha2-nistp384"]),
        ("ssh-rsa", ["rsa-sha2-512", "rsa-sha2-256"]),
    ],
)
@pytest.mark.parametrize("name", ["[board]:2222", "board"])
def test_known_types_are_asked_for_first(tmp_path: Path, known: str, first: list[str], name: str) -> None:
    check = check_for(tmp_path, line(name, known))
    rest = [algorithm for algorithm in ALGORITHMS if algorithm not in first]
    assert check.order_algorithms(ALGORITHMS) == [*first, *rest]


def test_without_known_keys_the_order_stays(tmp_path: Path) -> None:
    check = check_for(tmp_path, line("[board]:2222", "ssh-rsa", marker="@revoked") + line("other", "ssh-rsa"))
    assert check.order_algorithms(ALGORITHMS) == list(ALGORITHMS)


def test_one_of_several_keys_is_enough(tmp_path: Path) -> None:
    known = line("[board]:2222", "ssh-ed25519", 1) + line("[b*]:2222", "ssh-ed25519", 2)
    check_for(tmp_path, known).check("ssh-ed25519", blob("ssh-ed25519", 2))


def test_a_key_without_a_port_is_good_and_never_wrong(tmp_path: Path) -> None:
    check = check_for(tmp_path, line("board", "ssh-ed25519", 1))
    check.check("ssh-ed25519", blob("ssh-ed25519", 1))
    assert "is not known" in refusal(check, number=2).message


def test_a_key_of_another_port_is_no_key(tmp_path: Path) -> None:
    check = check_for(tmp_path, line("[board]:2223", "ssh-ed25519") + line("[board]:2222", "ssh-ed25519", 1), port=22)
    assert "is not known" in refusal(check).message


def test_a_name_is_known_in_any_case(tmp_path: Path) -> None:
    check_for(tmp_path, line("[Board]:2222", "ssh-ed25519"), host="bOARD").check("ssh-ed25519", blob("ssh-ed25519"))


def test_a_revoked_key_is_refused_though_it_is_known(tmp_path: Path) -> None:
    known = line("[board]:2222", "ssh-ed25519") + line("board", "ssh-ed25519", marker="@revoked")
    trouble = refusal(check_for(tmp_path, known))
    assert "revoked by line 2" in trouble.message
    assert "Do not connect" in trouble.next_step


def test_keys_of_the_whole_system_are_known_and_a_user_adds_to_the_own_file(tmp_path: Path) -> None:
    (tmp_path / "global").write_text(line("[board]:2222", "ssh-ed25519"))
    text = f"GlobalKnownHostsFile {tmp_path / 'global'}\n"
    check = check_for(tmp_path, "", text=text)
    check.check("ssh-ed25519", blob("ssh-ed25519"))
    assert str(tmp_path / "known hosts") in check_for(tmp_path, "", host="other", text=text)._trust_command(
        "ssh-ed25519", check._hop.host_key.files[0]
    )


def test_where_revoked_keys_cannot_be_read_none_is_trusted(tmp_path: Path) -> None:
    known, text = line("[board]:2222", "ssh-ed25519"), f"RevokedHostKeys {tmp_path / 'missing'}\n"
    assert (
        "The revoked host keys cannot be read: No such file" in refusal(check_for(tmp_path, known, text=text)).message
    )


@needs_keygen
def test_a_binary_list_of_revoked_keys_is_read_by_ssh_keygen(tmp_path: Path) -> None:
    revoked, other = (make_key(tmp_path / name).with_suffix(".pub") for name in ("revoked", "other"))
    file = tmp_path / "list"
    subprocess.run(["ssh-keygen", "-q", "-k", "-f", str(file), str(revoked)], check=True, capture_output=True)
    blobs = [base64.b64decode(public.read_text().split()[1]) for public in (revoked, other)]
    keygen = Path(shutil.which("ssh-keygen") or "")
    assert [is_revoked(file, "ssh-ed25519", blob, keygen) for blob in blobs] == [True, False]
    with pytest.raises(DeviceTrouble, match="only OpenSSH's ssh-keygen reads"):
        is_revoked(file, "ssh-ed25519", blobs[1], None)
    file.write_bytes(file.read_bytes()[:20])
    with pytest.raises(DeviceTrouble, match="cannot read the revoked host keys"):
        is_revoked(file, "ssh-ed25519", blobs[1], keygen)


def test_the_commands_are_quoted(tmp_path: Path) -> None:
    host = "board;reboot"
    trouble = refusal(check_for(tmp_path, "", host=host))
    command = shlex.split(trouble.next_step.partition("trust the key: ")[2])
    assert command[:6] == ["ssh-keyscan", "-p", "2222", "-t", "ed25519", host]
    assert command[-1] == str(tmp_path / "known hosts")
    trouble = refusal(check_for(tmp_path, line(f"[{host}]:2222", "ssh-ed25519", 1), host=host))
    command = shlex.split(trouble.next_step.partition("old key: ")[2])
    assert command == ["ssh-keygen", "-R", f"[{host}]:2222", "-f", str(tmp_path / "known hosts")]


def test_files_in_the_home_folder_are_shown_with_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert refusal(check_for(tmp_path, "")).next_step.endswith(">> ~/'known hosts'")


def test_known_hosts_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(DeviceTrouble, match="cannot be read") as caught:
        check_for(tmp_path, "", text=f"UserKnownHostsFile {tmp_path / 'folder'}\n")
    assert caught.value.kind is TroubleKind.REFUSED


BLOB = len(b"ssh-ed25519").to_bytes(4, "big") + b"ssh-ed25519" + (32).to_bytes(4, "big") + bytes(range(32))
KEY = f"ssh-ed25519 {base64.b64encode(BLOB).decode()}"

words = st.text(alphabet="ab.1*?![]:-", min_size=1, max_size=6)
names = st.one_of(
    st.text(alphabet="ab.1", min_size=1, max_size=4).filter(lambda name: name.strip(".")),
    st.sampled_from(["[a]:22", "[a.b]:2222", "::1", "[::1]:2222"]),
)


def write(folder: Path, text: str) -> Path:
    path = folder / "known_hosts"
    path.write_text(text)
    return path


def lines_found(file: Path, name: str) -> list[int]:
    return [key.line for key in known_host_keys((file,), name)]


@needs_keygen
@settings(max_examples=150, deadline=None)
@given(lines=st.lists(st.lists(words, min_size=1, max_size=3), min_size=1, max_size=6), name=names)
def test_it_finds_what_ssh_keygen_finds(lines: list[list[str]], name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = write(Path(folder), "".join(f"{','.join(patterns)} {KEY}\n" for patterns in lines))
        found = subprocess.run(["ssh-keygen", "-F", name, "-f", str(file)], capture_output=True, text=True)
        expected = [int(line.split()[-1]) for line in found.stdout.splitlines() if line.startswith("# Host")]
        assert lines_found(file, name) == expected


@needs_keygen
@pytest.mark.parametrize("name", ["board", "[board]:2222", "192.168.1.20", "::1"])
def test_hashed_names_are_found(tmp_path: Path, name: str) -> None:
    file = write(tmp_path, f"other {KEY}\n{name} {KEY}\n")
    subprocess.run(["ssh-keygen", "-H", "-f", str(file)], check=True, capture_output=True)
    assert "|1|" in file.read_text()
    assert lines_found(file, name) == [2]
    assert lines_found(file, f"{name}x") == []


@settings(max_examples=300, deadline=None)
@given(data=st.binary(max_size=300))
def test_any_file_is_read(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "known_hosts"
        path.write_bytes(data + f"\nboard {KEY}\n".encode())
        assert known_host_keys((path,), "board")[-1].blob == BLOB


@pytest.mark.parametrize(
    "line",
    [
        f"|1|%%%|%%% {KEY}",
        f"|1|AAAA {KEY}",
        f"|2|AAAA|AAAA {KEY}",
        "board ssh-ed25519 not*base64",
        f"board ssh-rsa {KEY.split()[1]}",
        f"@unknown board {KEY}",
        f"#board {KEY}",
        "board",
        "board ssh-ed25519",
    ],
)
def test_lines_that_make_no_sense_are_passed_over(tmp_path: Path, line: str) -> None:
    assert known_host_keys((write(tmp_path, f"{line}\n"),), "board") == ()


def test_markers_and_places_are_told(tmp_path: Path) -> None:
    file = write(tmp_path, f"\n# comment\n@revoked *,!other {KEY}\nboard,other {KEY} a comment\n")
    found = known_host_keys((tmp_path / "missing", file), "board")
    assert [(key.file, key.line, key.marker) for key in found] == [(file, 3, REVOKED), (file, 4, "")]
    assert lines_found(file, "other") == [4]


@needs_keygen
def test_fingerprints_are_those_of_ssh_keygen(tmp_path: Path) -> None:
    public = make_key(tmp_path / "key").with_suffix(".pub")
    listed = subprocess.run(["ssh-keygen", "-lf", str(public)], check=True, capture_output=True, text=True)
    assert fingerprint(base64.b64decode(public.read_text().split()[1])) == listed.stdout.split()[1]
