from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.device_trouble import DeviceTrouble, TroubleKind
from devices.remote_place import ConnectionSettings, SshAddress
from devices.ssh.route import SshHop, plan_route

needs_ssh = pytest.mark.skipif(shutil.which("ssh") is None, reason="ssh is not installed")

CONFIGURATION = """
# The lab.
Include included/*.conf
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
Match host 192.168.1.20 user pi
    IdentitiesOnly yes
    IdentityFile {folder}/matched
Match originalhost alias
    HostName matched.example.com
    User other
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


@pytest.fixture
def connections(tmp_path: Path) -> ConnectionSettings:
    return ConnectionSettings(
        ssh_config_file=tmp_path / "config",
        known_hosts_file=tmp_path / "known_hosts",
        identity_files=(tmp_path / "id_usual",),
        adb_key_file=tmp_path / "adbkey",
        lease_owner="tester@here",
        token_folder=tmp_path,
    )


def route(connections: ConnectionSettings, text: str, host: str, **fields: object) -> tuple[SshHop, ...]:
    connections.ssh_config_file.write_text(text)
    return plan_route(SshAddress(host, **fields), connections)


def refusal(connections: ConnectionSettings, text: str, host: str, **fields: object) -> str:
    with pytest.raises(DeviceTrouble) as caught:
        route(connections, text, host, **fields)
    assert caught.value.kind is TroubleKind.REFUSED
    assert caught.value.next_step
    return caught.value.message


@needs_ssh
@pytest.mark.parametrize(
    "host", ["board-1", "board-9", "quoted", "tokens", "alias", "far", "none", "included", "plain.example.com", "::1"]
)
def test_it_reads_what_ssh_reads(connections: ConnectionSettings, tmp_path: Path, host: str) -> None:
    (tmp_path / "included").mkdir()
    (tmp_path / "included" / "one.conf").write_text("Host included\n  Port 2022\n  User inside\n")
    text = CONFIGURATION.format(folder=tmp_path)
    hop = route(connections, text, host)[-1]
    # ssh looks for included files in the home folder's .ssh.
    connections.ssh_config_file.write_text(text.replace("included/", f"{tmp_path}/included/"))
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
    assert [str(path) for path in hop.identity_files] == files
    assert ["yes" if hop.identities_only else "no"] == told["identitiesonly"]
    assert " ".join(str(path) for path in hop.known_hosts_files) == told["userknownhostsfile"][0]
    assert hop.alive_interval_s == float(told["serveraliveinterval"][0])
    assert hop.connect_timeout_s == (3.0 if host == "far" else 10.0)
    assert len(hop.behind) == (2 if host == "far" else 0)


def test_without_a_configuration(connections: ConnectionSettings) -> None:
    (hop,) = plan_route(SshAddress("Board.Example", user="pi"), connections)
    assert hop.place == "pi@Board.Example:22"
    assert hop.host_key_name == "board.example"
    assert hop.known_hosts_files == (connections.known_hosts_file,)
    assert hop.identity_files == connections.identity_files
    assert not hop.identities_named
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
    assert "circle" in refusal(connections, text, "a", user="pi")


def test_a_proxy_command_is_refused_where_it_would_be_used(connections: ConnectionSettings) -> None:
    text = "Host inside\n  ProxyCommand nc %h %p\nHost off\n  ProxyCommand none\n  ProxyJump x\nHost *\n  User pi\n"
    assert "ProxyCommand" in refusal(connections, text, "inside")
    assert len(route(connections, text, "off")) == 1
    assert len(route(connections, text, "other")) == 1
    assert len(route(connections, text, "inside", jump=("none",))) == 1


@pytest.mark.parametrize("criterion", ['exec "test -e /"', "localnetwork 10.0.0.0/8", '!exec "true"'])
def test_a_match_that_cannot_be_judged_is_refused_for_its_hosts_alone(
    connections: ConnectionSettings, criterion: str
) -> None:
    text = f"Match originalhost board {criterion}\n  Port 2222\nHost *\n  User pi\n"
    assert "line 1 of" in refusal(connections, text, "board")
    assert route(connections, text, "other")[0].port == 22
    assert "not supported" in refusal(connections, f"Match {criterion}\n  Port 2222\n", "any")


def test_includes_belong_to_their_block(connections: ConnectionSettings, tmp_path: Path) -> None:
    (tmp_path / "plain.conf").write_text("Port 2222\n")
    (tmp_path / "hosts.conf").write_text("Host other\n  Port 2222\n")
    text = "Host board\n  Include plain.conf missing.conf\n  User pi\nHost *\n  User all\n"
    assert route(connections, text, "board")[0].place == "pi@board:2222"
    assert route(connections, text, "other")[0].place == "all@other:22"
    text = "Include hosts.conf\nUser all\n"
    assert route(connections, text, "other")[0].place == "all@other:2222"
    assert route(connections, text, "board")[0].place == "all@board:22"
    text = "Host board\n  Include hosts.conf\nHost *\n  User all\n"
    assert "includes Host or Match lines inside a block" in refusal(connections, text, "board")
    assert route(connections, text, "other")[0].port == 22


def test_a_file_that_includes_itself_is_refused(connections: ConnectionSettings) -> None:
    assert "too deeply" in refusal(connections, "Include config\nUser pi\n", "board")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Port many\n", "port 'many'"),
        ("Port 70000\n", "port '70000'"),
        ("HostName -oProxyCommand=evil\n", "not the name of a host"),
        ("HostName a\x07b\n", "not the name of a host"),
        ("User -x\n", "not the name of a user"),
        ("Nonsense\n", "cannot be used"),
        ('Host "unclosed\n', "cannot be used"),
        ("Match user\n", "cannot be used"),
        ('Match user "x\n', "cannot be used"),
        ("ProxyJump a b\n", "unusable jump host"),
        ("ProxyJump -oProxyCommand=evil\n", "unusable jump host"),
        ("CanonicalizeHostname yes\n", "cannot be used"),
        ("#" * 2**21, "larger than"),
    ],
)
def test_a_configuration_that_cannot_be_followed_is_refused(
    connections: ConnectionSettings, text: str, said: str
) -> None:
    assert said in refusal(connections, text, "board")


def test_the_identity_of_the_address_is_the_only_one(connections: ConnectionSettings, tmp_path: Path) -> None:
    (hop,) = route(connections, f"IdentityFile {tmp_path}/other\nUser pi\n", "board", identity_file=tmp_path / "mine")
    assert hop.identity_files == (tmp_path / "mine",)
    assert hop.identities_only
    assert hop.identities_named


def test_nowhere_is_the_usual_known_hosts(connections: ConnectionSettings) -> None:
    (hop,) = route(connections, "UserKnownHostsFile /dev/null\nStrictHostKeyChecking no\nUser pi\n", "board")
    assert hop.known_hosts_files == (connections.known_hosts_file,)


@pytest.mark.parametrize(("text", "seconds"), [("90", 90.0), ("1m30s", 90.0), ("0", 15.0), ("soon", 15.0)])
def test_durations(connections: ConnectionSettings, text: str, seconds: float) -> None:
    assert route(connections, f"ServerAliveInterval {text}\nUser pi\n", "board")[0].alive_interval_s == seconds


KEYWORDS = st.sampled_from(
    "Host Match Include HostName Port User ProxyJump ProxyCommand IdentityFile UserKnownHostsFile Nonsense".split()
)
VALUES = st.one_of(
    st.sampled_from(["*", "board", "!board *", "all", "host board", 'exec "x"', "none", "22", "a,b", "~/x %h", '"']),
    st.text(max_size=20),
)


@settings(max_examples=60, deadline=None)
@given(lines=st.lists(st.tuples(KEYWORDS, st.sampled_from([" ", "=", "\t", ""]), VALUES), max_size=8))
def test_any_configuration_gives_a_route_or_a_message(lines: list[tuple[str, str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "config").write_text("".join(f"{''.join(line)}\n" for line in lines), errors="replace")
        connections = ConnectionSettings(path / "config", path / "known_hosts", (), path / "adbkey", "me", path)
        try:
            hops = plan_route(SshAddress("board"), connections)
        except DeviceTrouble as trouble:
            assert trouble.kind is TroubleKind.REFUSED
        else:
            assert hops[-1].is_device
            assert all(0 < hop.port < 65536 and hop.host and hop.user for hop in hops)
