"""Runs of programs by the agent, and how they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from halide_autotune.devices.agent.protocol import encode_request, request_word
from halide_autotune.devices.agent.session import AgentError, AgentSession, Reply
from halide_autotune.devices.device_trouble import TroubleKind
from halide_autotune.devices.lease.lease import show_leases
from halide_autotune.devices.remote_place import RemotePlace, SshAddress
from tests.contract.local_link import LocalLink
from tests.process_state import PATIENCE_S, await_condition, has_ended, under_a_time_limit

# The first one builds the agent, and the C library for it.

SESSION = "ab12"
TOKEN = "c" * 32
# As source/run.c says.
TAIL_BYTES = 256 * 1024

# Children that leave their session and their parents behind; their ids go to a file.
FAMILY = """import os, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            with open("ids", "a") as file:
                print(os.getpid(), file=file, flush=True)
            time.sleep(1000)
        os._exit(0)
with open("ids", "a") as file:
    print(os.getpid(), file=file, flush=True)
while {goes_on}:
    time.sleep(0.01)
"""
FOR_EVER = FAMILY.format(goes_on="True")
UNTIL_ALL_ARE_THERE = FAMILY.format(goes_on="len(open('ids').readlines()) < 4")


def script(home: Path, name: str, text: str, interpreter: str = sys.executable) -> None:
    folder = home / "work" / f"s-{SESSION}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!{interpreter}\n{text}")
    (folder / name).chmod(0o700)


def fields(home: Path, program: str, *extra: tuple[str, str], token: str = TOKEN) -> list[tuple[str, str]]:
    given = {
        "lease_folder": str(home / "leases"),
        "slot": "0",
        "token": token,
        "owner": "tester",
        "ttl_s": "30",
        "session": SESSION,
        "program": program,
        "time_s": "60",
        "memory_bytes": str(2**33),
        "cores": "",
        "canary": "0",
    }
    given.update((key, value) for key, value in extra if key not in ("arg", "env"))
    return [*given.items(), *((key, value) for key, value in extra if key in ("arg", "env"))]


def run(agent: AgentSession, home: Path, program: str, *extra: tuple[str, str]) -> Reply:
    reply = agent.call("run", fields(home, program, *extra))
    assert reply is not None
    return reply


def start(agent: AgentSession, home: Path, program: str, *extra: tuple[str, str]) -> Future[Reply]:
    """Run the program beside the test."""
    with_one_thread = ThreadPoolExecutor(1)
    reply = with_one_thread.submit(run, agent, home, program, *extra)
    with_one_thread.shutdown(wait=False)
    return reply


def seconds(reply: Reply, key: str) -> float:
    value = reply.fields[key]
    assert isinstance(value, int | float)
    return value


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def note(home: Path) -> Path:
    return home / "work" / f"s-{SESSION}" / "ids"


def are_noted(home: Path, count: int) -> bool:
    return note(home).exists() and len(note(home).read_text().split()) == count


def ids(home: Path, count: int) -> list[int]:
    await_condition(lambda: are_noted(home, count))
    return [int(word) for word in note(home).read_text().split()]


def test_a_run_tells_what_happened(agent: AgentSession, home: Path) -> None:
    script(home, "p", "import sys, os; print(sys.argv[1:], os.environ['X'], os.getcwd()); sys.exit(3)")
    reply = run(agent, home, "p", ("arg", "a b"), ("arg", ""), ("env", "X=1"), ("env", "X=2=3"), ("canary", "1"))
    folder = home / "work" / f"s-{SESSION}"
    assert reply.output.decode() == f"['a b', ''] 2=3 {folder}\n"
    assert reply.fields["exit_code"] == 3 and reply.fields["signal"] == 0
    assert not reply.fields["timed_out"] and 0 < seconds(reply, "duration_s") < 60
    for key in ("canary_before_s", "canary_after_s"):
        assert 1e-5 < seconds(reply, key) < 1.0
    assert reply.fields["boot"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_a_run_is_pinned_and_limited(agent: AgentSession, home: Path) -> None:
    core = max(os.sched_getaffinity(0))
    script(
        home,
        "p",
        "import os, resource as r; print(sorted(os.sched_getaffinity(0)), r.getrlimit(r.RLIMIT_DATA)[0],"
        "r.getrlimit(r.RLIMIT_CORE)[0], r.getrlimit(r.RLIMIT_FSIZE)[0], os.getsid(0) == os.getpid())",
    )
    reply = run(agent, home, "p", ("cores", str(core)), ("memory_bytes", str(2**30)))
    assert reply.output.decode() == f"[{core}] {2**30} 0 {2**32} True\n"


def test_without_cores_a_run_has_all_of_them(agent: AgentSession, home: Path) -> None:
    script(home, "p", "import os; print(os.sched_getaffinity(0))")
    assert run(agent, home, "p", ("canary", "1")).output.decode() == f"{os.sched_getaffinity(0)}\n"


def test_the_end_of_a_long_output_is_sent(agent: AgentSession, home: Path) -> None:
    script(home, "p", "for i in range(200_000): print(i)")
    reply = run(agent, home, "p")
    everything = "".join(f"{i}\n" for i in range(200_000)).encode()
    assert reply.output == everything[-TAIL_BYTES:]


@pytest.mark.parametrize("size", [0, 1, 3071, 3072, 3073, TAIL_BYTES - 1, TAIL_BYTES, TAIL_BYTES + 1])
def test_output_of_any_length_arrives(agent: AgentSession, home: Path, size: int) -> None:
    script(home, "p", f"import sys; sys.stdout.buffer.write(bytes(i % 251 for i in range({size})))")
    assert run(agent, home, "p").output == bytes(i % 251 for i in range(size))[-TAIL_BYTES:]


def test_the_deadline_ends_all_that_descends_from_the_program(agent: AgentSession, home: Path) -> None:
    script(home, "p", FOR_EVER)

    def limited(limit_s: float) -> Reply:
        note(home).unlink(missing_ok=True)
        return run(agent, home, "p", ("time_s", str(limit_s)))

    reply = under_a_time_limit(limited, lambda: are_noted(home, 4))
    assert reply.fields["timed_out"] and reply.fields["signal"] == signal.SIGKILL
    assert all(has_ended(pid) for pid in ids(home, 4))


def test_children_do_not_outlive_a_program_that_ends(agent: AgentSession, home: Path) -> None:
    script(home, "p", UNTIL_ALL_ARE_THERE)
    assert run(agent, home, "p").fields["exit_code"] == 0
    assert all(has_ended(pid) for pid in ids(home, 4))


def test_a_killed_agents_children_end_with_the_next_run(
    agent: AgentSession, open_agent: Callable[[], AgentSession], home: Path
) -> None:
    script(home, "p", FOR_EVER)
    script(home, "q", "print('next')")
    under_way = start(agent, home, "p")
    pids = ids(home, 4)
    link = agent._link
    assert isinstance(link, LocalLink) and link.child is not None
    os.kill(link.child.pid, signal.SIGKILL)
    failure = under_way.exception()
    assert getattr(failure, "kind", None) is TroubleKind.LOST
    assert any(alive(pid) for pid in pids)
    assert run(open_agent(), home, "q").output == b"next\n"
    assert all(has_ended(pid) for pid in pids)


@pytest.mark.parametrize("how", ["run", "halt"])
def test_a_run_under_way_is_ended_by_the_next_one(
    agent: AgentSession, open_agent: Callable[[], AgentSession], home: Path, how: str
) -> None:
    script(home, "p", FOR_EVER)
    script(home, "q", "print('next')")
    under_way = start(agent, home, "p")
    pids = ids(home, 4)
    other = open_agent()
    if how == "run":
        assert run(other, home, "q").output == b"next\n"
    else:
        claim = [pair for pair in fields(home, "q") if pair[0] in ("lease_folder", "slot", "token", "owner", "ttl_s")]
        for _ in range(2):
            other.ask("halt", claim)
    failure = under_way.exception()
    assert isinstance(failure, AgentError) and "use of the slot" in str(failure)
    assert all(has_ended(pid) for pid in pids)


def test_hanging_up_ends_the_run(agent: AgentSession, home: Path) -> None:
    script(home, "p", FOR_EVER)
    agent.connect()
    agent.ask("lease-show", [("lease_folder", str(home / "leases"))])  # puts the agent there
    program = next((home / "work").glob("agent-*"))
    word = request_word(encode_request(fields(home, "p"), "0" * 16))
    child = subprocess.Popen([str(program), "run", word], stdout=subprocess.PIPE)
    pids = ids(home, 4)
    assert child.stdout is not None
    child.stdout.close()
    assert child.wait(PATIENCE_S) != 0
    assert all(has_ended(pid) for pid in pids)


def test_a_run_whose_lease_is_taken_by_force_ends(
    agent: AgentSession, open_agent: Callable[[], AgentSession], home: Path
) -> None:
    script(home, "p", "import time; open('ids', 'w').write('1'); time.sleep(1000)")
    under_way = start(agent, home, "p", ("ttl_s", "1.5"))
    ids(home, 1)
    claim = [pair for pair in fields(home, "q", token="d" * 32) if pair[0] not in ("session", "program", "time_s")]
    open_agent().ask("lease-take", [*claim, ("force", "1")])
    failure = under_way.exception()
    assert isinstance(failure, AgentError) and failure.kind is TroubleKind.LEASED
    assert "leased by tester" in str(failure)


def test_a_run_keeps_its_lease(agent: AgentSession, home: Path) -> None:
    script(home, "p", "import time; time.sleep(8)")
    run(agent, home, "p", ("ttl_s", "6"))
    assert show_leases(agent, RemotePlace(SshAddress("board"), lease_folder=str(home / "leases")))


def test_a_run_needs_the_lease(agent: AgentSession, home: Path) -> None:
    script(home, "p", "print(1)")
    run(agent, home, "p")
    with pytest.raises(AgentError, match="leased by tester") as caught:
        agent.call("run", fields(home, "p", token="d" * 32))
    assert caught.value.kind is TroubleKind.LEASED


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("program", "../agent", "not a file name"),
        ("program", ".part-1", "not a file name"),
        ("program", "a/b", "not a file name"),
        ("program", "", "not a file name"),
        ("program", "x" * 201, "not a file name"),
        ("session", "../..", "not hexadecimal"),
        ("session", "", "not hexadecimal"),
        ("session", "a" * 65, "not hexadecimal"),
        ("token", "short", "not hexadecimal"),
        ("slot", "-1", "expected a number"),
        ("slot", "9999999999", "expected a number"),
        ("time_s", "nan", "expected a number"),
        ("time_s", "1e99", "expected a number"),
        ("ttl_s", "0", "expected a number"),
        ("memory_bytes", "x", "expected a number"),
        ("cores", "0,", "not a list of cores"),
        ("cores", "x", "not a list of cores"),
        ("cores", "-1", "not a list of cores"),
        ("cores", "1023", "no usable core 1023"),
        ("cores", "99999999999999999999999", "not a list of cores"),
        ("canary", "2", "neither 0 nor 1"),
    ],
)
def test_hostile_fields_are_refused(agent: AgentSession, home: Path, key: str, value: str, message: str) -> None:
    script(home, "p", "print(1)")
    with pytest.raises(AgentError, match=message) as caught:
        run(agent, home, "p", (key, value))
    assert caught.value.event.kind == "usage"


def test_a_program_that_cannot_be_started_is_named(agent: AgentSession, home: Path) -> None:
    script(home, "p", "", interpreter="/nowhere/to/be/found")
    for name in ("missing", "p"):
        with pytest.raises(AgentError, match=f"{name} cannot be started: No such file"):
            run(agent, home, name)


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ([], "usage: agent COMMAND REQUEST"),
        (["run"], "usage: agent COMMAND REQUEST"),
        (["run", "!!"], "not base64url"),
        (["run", ""], "does not end with a field"),
        (["run", "AA"], "has no value"),
        (["run", "YT1iAA"], "no nonce"),
        (["run", "YT0A" * 9000], "too many fields"),
        (["run", "@../../etc/passwd"], "odd name"),
        (["run", "@missing"], "cannot be read"),
    ],
)
def test_what_is_no_request_is_refused(agent: AgentSession, home: Path, arguments: list[str], answer: str) -> None:
    agent.ask("lease-show", [("lease_folder", str(home / "leases"))])
    program = next((home / "work").glob("agent-*"))
    done = subprocess.run([str(program), *arguments], stdout=subprocess.PIPE, text=True, timeout=240, check=False)
    assert done.returncode == 2 and answer in done.stdout


def test_an_unknown_command_is_refused(agent: AgentSession) -> None:
    with pytest.raises(AgentError, match="no command conquer"):
        agent.ask("conquer", [])


def test_a_long_request_goes_by_file_and_none_is_left(agent: AgentSession, home: Path) -> None:
    script(home, "p", "import sys; print(len(sys.argv), sum(map(len, sys.argv[1:])))")
    reply = run(agent, home, "p", *(("arg", "x" * 100) for _ in range(500)))
    assert reply.output == b"501 50000\n"
    assert not list((home / "work").glob("request-*"))
