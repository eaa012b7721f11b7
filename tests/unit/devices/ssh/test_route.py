from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.remote_place import ConnectionSettings, SshAddress
from halide_autotune.devices.ssh.route import SshHop, plan_route
from halide_autotune.targets.process.limited_process import ProcessLimits

SSH = shutil.which("ssh")
needs_ssh = pytest.mark.skipif(SSH is None, reason="ssh is not installed")
OPENSSH = pytest.param("openssh", marks=needs_ssh)
openssh_alone = pytest.mark.parametrize("reader", [OPENSSH], indirect=True)
paramiko_alone = pytest.mark.parametrize("reader", ["paramiko"], indirect=True)

PLAIN_CONFIGURATION = """
# The lab.
Host board-? !board-9
    HostName 192.168.1.20
    Port=2222
    User pi
Host "two words" quoted
    HostName quoted.example.com
    IdentityFile "{folder}/a key"
Host tokens
    HostName %h.example.com
    User me
    IdentityFile {folder}/%h-%r
Host far
    ProxyJump me@first:2200,second
    ConnectTimeout 3
Host none
    ProxyJump none
Host *
    IdentityFile {folder}/last
    ServerAliveInterval 7
    UserKnownHostsFile {folder}/kh1 {folder}/kh2
    User lastuser
"""
MATCHES = """
Include {folder}/included/*.conf
Host board-? !board-9
    HostName 192.168.1.20
    User pi
Match host 192.168.1.20 user pi
    IdentitiesOnly yes
    IdentityFile {folder}/matched
Match originalhost alias
    HostName matched.example.com
    User other
"""


@pytest.fixture(params=[OPENSSH, "paramiko"], scope="module")
def reader(request: pytest.FixtureRequest) -> str:
    """Who reads the configuration."""
    name: str = request.param
    return name


@pytest.fixture
def connections(tmp_path: Path, reader: str) -> ConnectionSettings:
    return ConnectionSettings(
        ssh_config_file=tmp_path / "config",
        known_hosts_file=tmp_path / "known_hosts",
        identity_files=(tmp_path / "id_usual",),
        adb_key_file=tmp_path / "adbkey",
        lease_owner="tester@here",
        token_folder=tmp_path,
        ssh_program=Path(SSH) if SSH and reader == "openssh" else None,
        environment={"LAB": "/lab", "PATH": os.defpath},
    )


def route(connections: ConnectionSettings, text: str, host: str, **fields: Any) -> tuple[SshHop, ...]:
    connections.ssh_config_file.write_text(text)
    return plan_route(SshAddress(host, **fields), connections)


def refusal(connections: ConnectionSettings, text: str, host: str, **fields: Any) -> str:
    with pytest.raises(DeviceTrouble) as caught:
        route(connections, text, host, **fields)
    assert caught.value.kind is TroubleKind.REFUSED
    assert caught.value.next_step
    return caught.value.message


@needs_ssh
@pytest.mark.parametrize(
    "host", ["board-1", "board-9", "quoted", "tokens", "alias", "far", "none", "included", "plain.example.com", "::1"]
)
def test_it_reads_what_ssh_reads(connections: ConnectionSettings, tmp_path: Path, reader: str, host: str) -> None:
    (tmp_path / "included").mkdir()
    (tmp_path / "included" / "one.conf").write_text("Host included\n  Port 2022\n  User inside\n")
    text = (MATCHES if reader == "openssh" else "") + PLAIN_CONFIGURATION
    hop = route(connections, text.format(folder=tmp_path), host)[-1]
    command = ["ssh", "-G", "-F", str(connections.ssh_config_file), host]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    told: dict[str, list[str]] = {}
    for line in listed.splitlines():
        keyword, _, value = line.partition(" ")
        told.setdefault(keyword, []).append(value)
    assert [hop.host] == told["hostname"]
    assert [str(hop.port)] == told["port"]
    assert [hop.user] == told["user"]
    # ssh -G leaves the tokens of these as they are.
    files = [value.strip('"').replace("%h", hop.host).replace("%r", hop.user) for value in told["identityfile"]]
    assert [str(path) for path in hop.keys.files] == files
    assert hop.keys.are_named
    assert ["yes" if hop.keys.are_all else "no"] == told["identitiesonly"]
    assert " ".join(str(path) for path in hop.host_key.files) == told["userknownhostsfile"][0]
    assert hop.alive_interval_s == float(told["serveraliveinterval"][0])
    assert hop.connect_timeout_s == (3.0 if host == "far" else 10.0)
    assert len(hop.behind) == (2 if host == "far" else 0)


@openssh_alone
@pytest.mark.parametrize(
    ("host", "place"),
    [
        ("board-1", "pi@192.168.1.20:22"),
        ("alias", "other@matched.example.com:22"),
        ("included", "inside@included:2022"),
        ("other", "lastuser@other:22"),
    ],
)
def test_match_and_include_count(connections: ConnectionSettings, tmp_path: Path, host: str, place: str) -> None:
    (tmp_path / "included").mkdir()
    (tmp_path / "included" / "one.conf").write_text("Host included\n  Port 2022\n  User inside\n")
    hop = route(connections, MATCHES.format(folder=tmp_path) + "Host *\n  User lastuser\n", host)[-1]
    assert hop.place == place
    assert hop.keys.are_all == (host == "board-1")


@paramiko_alone
@pytest.mark.parametrize("line", ["Include hosts.conf", "match host board", "Host board\n  Include hosts.conf"])
def test_what_only_ssh_follows_is_refused_without_it(connections: ConnectionSettings, line: str) -> None:
    connections.ssh_config_file.write_text(f"{line}\n  Port 2222\n")
    with pytest.raises(DeviceTrouble) as caught:
        plan_route(SshAddress("board", user="pi"), connections)
    assert caught.value.kind is TroubleKind.REFUSED
    assert str(connections.ssh_config_file) in caught.value.message
    assert "Install OpenSSH's client" in caught.value.next_step


def test_without_a_configuration(connections: ConnectionSettings) -> None:
    # In lower case, as ssh does it.
    (hop,) = plan_route(SshAddress("Board.Example", user="pi"), connections)
    assert hop.place == "pi@board.example:22"
    assert hop.host_key.name == "board.example"
    assert hop.host_key.files == (connections.known_hosts_file,)
    assert hop.keys.files == connections.identity_files
    assert not hop.keys.are_named
    assert (hop.connect_timeout_s, hop.alive_interval_s) == (10.0, 15.0)


def test_jumps_are_in_order(connections: ConnectionSettings) -> None:
    text = "Host second\n  HostName 10.0.0.2\n  ProxyJump zero\nHost first\n  ProxyJump zero\nUser pi\n"
    hops = route(connections, text + "Host *\n  User pi\n", "far", jump=("me@first:2200", "second"))
    assert [hop.place for hop in hops] == ["pi@zero:22", "me@first:2200", "pi@10.0.0.2:22", "pi@far:22"]
    assert [hop.is_device for hop in hops] == [False, False, False, True]
    assert hops[-1].behind == ("pi@zero:22", "me@first:2200", "pi@10.0.0.2:22")
    assert hops[0].behind == ()


def test_a_jump_host_of_every_host_is_reached_directly(connections: ConnectionSettings) -> None:
    hops = route(connections, "Host *\n  User pi\n  ProxyJump bastion\n", "board")
    assert [hop.place for hop in hops] == ["pi@bastion:22", "pi@board:22"]


def test_jump_hosts_in_a_circle_are_refused(connections: ConnectionSettings) -> None:
    text = "Host a\n  ProxyJump b\nHost b\n  ProxyJump a\n"
    assert "or a loop" in refusal(connections, text, "a", user="pi")


def test_a_proxy_command_is_refused_where_it_would_be_used(connections: ConnectionSettings) -> None:
    text = "Host inside\n  ProxyCommand nc %h %p\nHost off\n  ProxyCommand none\n  ProxyJump x\nHost *\n  User pi\n"
    assert "ProxyCommand" in refusal(connections, text, "inside")
    assert len(route(connections, text, "off")) == 1
    assert len(route(connections, text, "other")) == 1
    assert len(route(connections, text, "inside", jump=("none",))) == 1


@openssh_alone
def test_a_program_of_a_match_decides(connections: ConnectionSettings, tmp_path: Path) -> None:
    program = f"printf 'user x\\nproxyjump nowhere\\n' >&2; test -e {tmp_path}/marker -a $LAB = /lab"
    text = f'Match originalhost board exec "{program}"\n  Port 2222\nHost *\n  User pi\n'
    assert route(connections, text, "board")[0].place == "pi@board:22"
    (tmp_path / "marker").touch()
    assert route(connections, text, "board")[0].place == "pi@board:2222"
    assert route(connections, text, "other")[0].place == "pi@other:22"


@openssh_alone
def test_a_match_knows_the_user_and_port_of_the_address(connections: ConnectionSettings) -> None:
    text = "Match user pi\n  IdentityFile /keys/%r-%p-%h\n"
    (hop,) = route(connections, text, "board", user="pi", port=2222)
    assert hop.keys.files == (Path("/keys/pi-2222-board"),)
    assert route(connections, text, "board", user="other")[0].keys.files == connections.identity_files


@openssh_alone
def test_includes_belong_to_their_block(connections: ConnectionSettings, tmp_path: Path) -> None:
    (tmp_path / "plain.conf").write_text("Port 2222\n")
    (tmp_path / "hosts.conf").write_text("Host other\n  Port 2222\n")
    text = f"Host board\n  Include {tmp_path}/plain.conf {tmp_path}/no.conf\n  User pi\nHost *\n  User all\n"
    assert route(connections, text, "board")[0].place == "pi@board:2222"
    assert route(connections, text, "other")[0].place == "all@other:22"
    text = f"Include {tmp_path}/hosts.conf\nUser all\n"
    assert route(connections, text, "other")[0].place == "all@other:2222"
    assert route(connections, text, "board")[0].place == "all@board:22"
    text = f"Host board\n  Include {tmp_path}/hosts.conf\nHost *\n  User all\n"
    assert route(connections, text, "other")[0].port == 22


@openssh_alone
def test_a_file_that_includes_itself_is_refused(connections: ConnectionSettings) -> None:
    assert "recursive" in refusal(connections, f"Include {connections.ssh_config_file}\nUser pi\n", "board")


@pytest.mark.parametrize("keyword", ["IdentityFile", "UserKnownHostsFile"])
def test_tokens_and_variables(connections: ConnectionSettings, keyword: str) -> None:
    text = f"{keyword} ${{LAB}}/%%-%h-%n-%p-%r\nHostName %h.example\nUser pi\nPort 2222\n"
    (hop,) = route(connections, text, "board")
    files = hop.keys.files if keyword == "IdentityFile" else hop.host_key.files
    assert files == (Path("/lab/%-board.example-board-2222-pi"),)


def test_tokens_of_a_jump_host(connections: ConnectionSettings) -> None:
    hops = route(connections, "Host board\n  ProxyJump %r@gate-%h:2200\nHost *\n  User pi\n", "board")
    assert [hop.place for hop in hops] == ["pi@gate-board:2200", "pi@board:22"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Port many\n", "port 'many'"),
        ("Port 70000\n", "port '70000'"),
        ("HostName -oProxyCommand=evil\n", "not the name of a host"),
        ("User -x\n", "not the name of a user"),
        ("Nonsense\n", "cannot be used"),
        ('Host "unclosed\n', "cannot be used"),
        ("Match user\n", "cannot be used"),
        ('Match user "x\n', "cannot be used"),
        ("ProxyJump -oProxyCommand=evil\n", "unusable jump host"),
    ],
)
def test_a_configuration_that_cannot_be_followed_is_refused(
    connections: ConnectionSettings, text: str, said: str
) -> None:
    assert said.lower() in refusal(connections, text, "board").lower()


@paramiko_alone
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("HostName a\x07b\n", "not the name of a host"),
        ("ProxyJump a b\n", "unusable jump host"),
        ("CanonicalizeHostname yes\n", "cannot be used"),
    ],
)
def test_what_ssh_makes_sense_of_is_refused_without_it(connections: ConnectionSettings, text: str, said: str) -> None:
    assert said in refusal(connections, text, "board")


@openssh_alone
def test_a_mistake_is_told_with_its_place(connections: ConnectionSettings) -> None:
    told = refusal(connections, "User pi\nBogus yes\n", "board")
    assert "config: line 2: Bad configuration option: bogus." in told
    assert "\n" not in told


@pytest.mark.parametrize(
    "address", [SshAddress("-oProxyCommand=evil"), SshAddress("a@b"), SshAddress("a\0b"), SshAddress("a", user="-x")]
)
def test_names_that_would_mean_something_else_are_refused(connections: ConnectionSettings, address: SshAddress) -> None:
    with pytest.raises(DeviceTrouble) as caught:
        plan_route(address, connections)
    assert caught.value.kind is TroubleKind.REFUSED
    assert "is not the name of a" in caught.value.message


def fake_ssh(connections: ConnectionSettings, script: str, file: Path | None = None) -> ConnectionSettings:
    """A client that is a script, in place of OpenSSH's."""
    program = connections.token_folder / "fake-ssh"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    return replace(connections, ssh_program=program, ssh_config_file=file or connections.ssh_config_file)


@openssh_alone
def test_the_configuration_of_the_whole_system_counts_as_for_ssh(
    connections: ConnectionSettings, tmp_path: Path
) -> None:
    answer = f'echo "$@" > {tmp_path}/told; {SSH} "$@"'
    of_the_user = Path(pwd.getpwuid(os.getuid()).pw_dir) / ".ssh" / "config"
    for file, words in ((of_the_user, ""), (tmp_path / "none", "-F none "), (tmp_path, f"-F {tmp_path} ")):
        plan_route(SshAddress("board", port=2222, user="pi"), fake_ssh(connections, answer, file))
        assert (tmp_path / "told").read_text().endswith(f"{words}-l pi -p 2222 -- board\n")
        assert ("-F" in (tmp_path / "told").read_text()) == bool(words)


@openssh_alone
@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo unknown option -- G >&2; exit 255", "unknown option"),
        ("kill -9 $$", "SIGKILL"),
        ("true", "does not answer as OpenSSH's does"),
    ],
)
def test_a_client_that_answers_something_else(connections: ConnectionSettings, script: str, said: str) -> None:
    assert said in refusal(fake_ssh(connections, script), "", "board", user="pi")


@openssh_alone
def test_a_client_that_does_not_answer(connections: ConnectionSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("halide_autotune.devices.ssh.config._LIMITS", ProcessLimits(time_s=0.2, memory_bytes=2**30))
    assert "did not end within" in refusal(fake_ssh(connections, "sleep 1000"), "", "board", user="pi")
    gone = replace(connections, ssh_program=connections.token_folder / "gone")
    assert "cannot be started" in refusal(gone, "", "board", user="pi")


def test_a_user_whom_the_system_does_not_know(connections: ConnectionSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(number: int) -> object:
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert route(connections, "HostName 10.0.0.2\n", "board", user="pi")[0].place == "pi@10.0.0.2:22"
    assert "not known" in refusal(connections, "", "board")


def test_the_identity_of_the_address_is_the_only_one(connections: ConnectionSettings, tmp_path: Path) -> None:
    (hop,) = route(connections, f"IdentityFile {tmp_path}/other\nUser pi\n", "board", identity_file=tmp_path / "mine")
    assert hop.keys.files == (tmp_path / "mine",)
    assert hop.keys.are_all
    assert hop.keys.are_named


def test_nowhere_is_the_usual_known_hosts(connections: ConnectionSettings) -> None:
    (hop,) = route(connections, "UserKnownHostsFile /dev/null\nStrictHostKeyChecking no\nUser pi\n", "board")
    assert hop.host_key.files == (connections.known_hosts_file,)


@pytest.mark.parametrize(("text", "seconds"), [("90", 90.0), ("1m30s", 90.0), ("0", 15.0)])
def test_durations(connections: ConnectionSettings, text: str, seconds: float) -> None:
    (hop,) = route(connections, f"ServerAliveInterval {text}\nConnectTimeout {text}\nUser pi\n", "board")
    assert hop.alive_interval_s == seconds
    assert hop.connect_timeout_s == (10.0 if text == "0" else seconds)


def test_a_duration_that_is_none(connections: ConnectionSettings, reader: str) -> None:
    text = "ServerAliveInterval soon\nUser pi\n"
    if reader == "openssh":
        assert "cannot be used" in refusal(connections, text, "board")
    else:
        assert route(connections, text, "board")[0].alive_interval_s == 15.0


KEYWORDS = st.sampled_from(
    "Host Match Include HostName Port User ProxyJump ProxyCommand IdentityFile UserKnownHostsFile Nonsense".split()
)
VALUES = st.one_of(
    st.sampled_from(["*", "board", "!board *", "all", "host board", 'exec "x"', "none", "22", "a,b", "~/x %h", '"']),
    st.text(max_size=20),
)


@settings(max_examples=60, deadline=None)
@given(lines=st.lists(st.tuples(KEYWORDS, st.sampled_from([" ", "=", "\t", ""]), VALUES), max_size=8))
def test_any_configuration_gives_a_route_or_a_message(reader: str, lines: list[tuple[str, str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "config").write_text("".join(f"{''.join(line)}\n" for line in lines), errors="replace")
        connections = ConnectionSettings(path / "config", path / "known_hosts", (), path / "adbkey", "me", path)
        connections = replace(connections, ssh_program=Path(SSH) if SSH and reader == "openssh" else None)
        try:
            hops = plan_route(SshAddress("board"), connections)
        except DeviceTrouble as trouble:
            assert trouble.kind is TroubleKind.REFUSED
        else:
            assert hops[-1].is_device
            assert all(0 < hop.port < 65536 and hop.host and hop.user for hop in hops)
