from __future__ import annotations

import base64
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.ssh.known_hosts import REVOKED, fingerprint, known_host_keys
from tests.sshd_server import make_key

BLOB = len(b"ssh-ed25519").to_bytes(4, "big") + b"ssh-ed25519" + (32).to_bytes(4, "big") + bytes(range(32))
KEY = f"ssh-ed25519 {base64.b64encode(BLOB).decode()}"
needs_keygen = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")

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
