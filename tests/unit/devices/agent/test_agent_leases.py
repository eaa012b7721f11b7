"""Leases and governors, as the agent keeps them on the device."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import threading
import time
from pathlib import Path

import pytest

from halide_autotune.devices.agent.program import AgentProgram, agent_for
from halide_autotune.devices.agent.session import AgentError, AgentSession
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.health.probe import DspProbe, FastRpcNode, probe_device, sense_device
from halide_autotune.devices.lease.lease import LeaseClaim, release_lease, show_leases, take_lease
from halide_autotune.devices.remote_place import RemotePlace
from halide_autotune.targets.process.content_cache import ContentCache
from tests.contract.local_device import local_device
from tests.contract.local_link import LocalLink

# The first one builds the agent, and the C library for it.
pytestmark = pytest.mark.toolchain

TOKENS = ("a" * 32, "b" * 32)


def claim(home: Path, who: int, slot: int = 0, ttl_s: float = 60.0) -> LeaseClaim:
    return LeaseClaim(slot, str(home / "leases"), TOKENS[who], f"user{who}@there", ttl_s)


def place(home: Path) -> RemotePlace:
    remote = local_device(home).remote
    assert remote is not None
    return remote


def test_a_slot_has_one_owner(agent: AgentSession, home: Path) -> None:
    first = take_lease(agent, claim(home, 0))
    assert 59 < first.expires_in_s <= 60 and 0 <= first.since_s < 30
    with pytest.raises(AgentError, match="leased by user0@there") as caught:
        take_lease(agent, claim(home, 1))
    assert caught.value.kind is TroubleKind.LEASED
    assert re.search(r"\d+ s ago and ends in \d\d? s unless", caught.value.message)
    assert "`sdk devices release bench --force`" in caught.value.next_step
    assert caught.value.event.fields["owner"] == "user0@there"
    take_lease(agent, claim(home, 1, slot=1))
    shown = show_leases(agent, place(home))
    assert [(lease.slot, lease.owner) for lease in shown] == [(0, "user0@there"), (1, "user1@there")]


def test_leases_are_shown_whole_once_another_program_has_unlocked_them(agent: AgentSession, home: Path) -> None:
    """The agent tells that it is alive meanwhile, which is no part of its answer."""
    take_lease(agent, claim(home, 0))
    with (home / "leases" / "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        unlock = threading.Timer(1.5, fcntl.flock, (lock.fileno(), fcntl.LOCK_UN))
        unlock.start()
        try:
            assert [lease.owner for lease in show_leases(agent, place(home))] == ["user0@there"]
        finally:
            unlock.join()


def test_a_released_slot_is_free_and_only_its_owner_releases_it(agent: AgentSession, home: Path) -> None:
    take_lease(agent, claim(home, 0))
    assert not release_lease(agent, claim(home, 1))
    assert release_lease(agent, claim(home, 0))
    assert not release_lease(agent, claim(home, 0))
    assert show_leases(agent, place(home)) == ()
    take_lease(agent, claim(home, 1))


def test_a_lease_ends_with_its_time(agent: AgentSession, home: Path) -> None:
    take_lease(agent, claim(home, 0, ttl_s=0.2))
    time.sleep(0.3)
    assert show_leases(agent, place(home)) == ()
    take_lease(agent, claim(home, 1))


def test_a_renewal_keeps_the_longer_time(agent: AgentSession, home: Path) -> None:
    take_lease(agent, claim(home, 0, ttl_s=3600))
    assert take_lease(agent, claim(home, 0, ttl_s=1)).expires_in_s > 3000


def test_a_lease_can_be_taken_by_force(agent: AgentSession, home: Path) -> None:
    take_lease(agent, claim(home, 0))
    take_lease(agent, claim(home, 1), force=True)
    with pytest.raises(AgentError, match="leased by user1@there"):
        take_lease(agent, claim(home, 0))


def test_a_lease_ends_with_the_boot(agent: AgentSession, home: Path) -> None:
    take_lease(agent, claim(home, 0))
    file = home / "leases" / "slot-0"
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert boot in file.read_text()
    file.write_text(file.read_text().replace(boot, "0" * len(boot)))
    take_lease(agent, claim(home, 1))


def test_a_lease_does_not_tell_its_token_and_everyone_may_write_it(agent: AgentSession, home: Path) -> None:
    take_lease(agent, claim(home, 0))
    folder = home / "leases"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o1777
    for file in folder.iterdir():
        assert TOKENS[0].encode() not in file.read_bytes()
        assert stat.S_IMODE(file.stat().st_mode) == 0o666
    assert TOKENS[0] not in repr(claim(home, 0))


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"boot\ntoken", b"\xff" * 5000, b"taken nan\nexpires inf\n"])
def test_a_damaged_lease_is_none(agent: AgentSession, home: Path, content: bytes) -> None:
    take_lease(agent, claim(home, 0))
    (home / "leases" / "slot-0").write_bytes(content)
    assert show_leases(agent, place(home)) == ()
    take_lease(agent, claim(home, 1))


@pytest.mark.parametrize(("taken", "expires"), [("0", "1e300"), ("-5", "+60"), ("+1000", "+60"), ("nan", "+60")])
def test_a_lease_with_times_that_no_agent_writes_is_none(
    agent: AgentSession, home: Path, taken: str, expires: str
) -> None:
    take_lease(agent, claim(home, 0))
    file = home / "leases" / "slot-0"
    now_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    at = [str(now_s + float(text)) if text.startswith("+") else text for text in (taken, expires)]
    head = file.read_text().partition("taken")[0]
    file.write_text(f"{head}taken {at[0]}\nexpires {at[1]}\n")
    assert show_leases(agent, place(home)) == ()
    take_lease(agent, claim(home, 1))


def test_an_owner_cannot_add_lines_to_a_lease(agent: AgentSession, home: Path) -> None:
    hostile = LeaseClaim(0, str(home / "leases"), TOKENS[0], "me\nexpires 9e9\n\x1b[31m" + "x" * 500, 60)
    take_lease(agent, hostile)
    (lease,) = show_leases(agent, place(home))
    assert lease.expires_in_s <= 60 and lease.owner.startswith("me expires 9e9") and len(lease.owner) <= 120


@pytest.mark.parametrize("trap", ["link", "fifo", "folder", "hard link"])
def test_a_trap_in_the_lease_folder_is_not_stepped_into(agent: AgentSession, home: Path, trap: str) -> None:
    take_lease(agent, claim(home, 0))
    file, victim = home / "leases" / "slot-0", home / "victim"
    victim.write_text("precious")
    file.unlink()
    if trap == "link":
        file.symlink_to(victim)
    elif trap == "fifo":
        os.mkfifo(file)
    elif trap == "folder":
        file.mkdir()
    else:
        os.link(victim, file)
    with pytest.raises(AgentError, match="lease cannot be written"):
        take_lease(agent, claim(home, 1))
    assert victim.read_text() == "precious"


def test_a_linked_lease_folder_is_refused(agent: AgentSession, home: Path) -> None:
    (home / "elsewhere").mkdir()
    (home / "leases").symlink_to(home / "elsewhere")
    with pytest.raises(AgentError, match="lease folder cannot be opened"):
        take_lease(agent, claim(home, 0))


@pytest.fixture(scope="session")
def sys_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("machine") / "sys"


@pytest.fixture
def sys_root(sys_place: Path) -> Path:
    """A machine whose cores have governors; always at the same place, which is compiled into the agent."""
    root = sys_place
    shutil.rmtree(root, ignore_errors=True)
    for core in range(os.cpu_count() or 1):
        folder = root / "devices" / "system" / "cpu" / f"cpu{core}" / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_governor").write_text("schedutil\n" if core else "ondemand\n")
        (folder / "cpuinfo_max_freq").write_text("2400000\n")
    zone = root / "class" / "thermal" / "thermal_zone3"
    zone.mkdir(parents=True)
    (zone / "temp").write_text("45500\n")
    (zone / "type").write_text("cpu-thermal\n")
    return root


@pytest.fixture
def governed(home: Path, cache: ContentCache, sys_root: Path) -> AgentSession:
    def build(_: str) -> AgentProgram:
        places = (f'SYS_ROOT="{sys_root}"', f'DEVICE_ROOT="{sys_root}/phone"')
        return agent_for("x86_64", cache, places)

    return AgentSession(LocalLink(home), local_device(home), build)


def governors(sys_root: Path) -> list[str]:
    files = sorted(sys_root.glob("devices/system/cpu/cpu*/cpufreq/scaling_governor"))
    return [file.read_text().strip() for file in files]


def set_governor(agent: AgentSession, who: LeaseClaim, to: str, cores: str = "") -> None:
    agent.ask("governor", [*who.fields(), ("set", to), ("cores", cores)])


def test_governors_go_to_performance_and_back(governed: AgentSession, home: Path, sys_root: Path) -> None:
    before = governors(sys_root)
    # Asked for again, it still knows what was before.
    for _ in range(2):
        set_governor(governed, claim(home, 0), "performance")
        assert set(governors(sys_root)) == {"performance"}
    # Restored again, it changes nothing.
    for _ in range(2):
        set_governor(governed, claim(home, 0), "restore")
        assert governors(sys_root) == before


def test_only_the_chosen_cores_change(governed: AgentSession, home: Path, sys_root: Path) -> None:
    before = governors(sys_root)
    set_governor(governed, claim(home, 0), "performance", "0")
    assert governors(sys_root) == ["performance", *before[1:]]


def test_releasing_restores(governed: AgentSession, home: Path, sys_root: Path) -> None:
    before = governors(sys_root)
    set_governor(governed, claim(home, 0), "performance")
    release_lease(governed, claim(home, 0))
    assert governors(sys_root) == before


def test_who_takes_the_slot_of_a_dead_owner_restores(governed: AgentSession, home: Path, sys_root: Path) -> None:
    before = governors(sys_root)
    set_governor(governed, claim(home, 0, ttl_s=0.2), "performance")
    time.sleep(0.3)
    take_lease(governed, claim(home, 1))
    assert governors(sys_root) == before


def test_governors_of_another_boot_are_left_alone(governed: AgentSession, home: Path, sys_root: Path) -> None:
    set_governor(governed, claim(home, 0), "performance")
    file = home / "leases" / "governor-0"
    boot, _, rest = file.read_text().partition("\n")
    file.write_text("0" * len(boot) + "\n" + rest)
    set_governor(governed, claim(home, 0), "restore")
    assert set(governors(sys_root)) == {"performance"}


def test_rubbish_among_the_remembered_governors_is_passed_over(
    governed: AgentSession, home: Path, sys_root: Path
) -> None:
    set_governor(governed, claim(home, 0), "performance")
    file = home / "leases" / "governor-0"
    boot = file.read_text().splitlines()[0]
    file.write_text(f"{boot}\n0 ../../x\n-1 ondemand\n99999999999 ondemand\n0\n0 {'x' * 100}\n0 powersave\n")
    set_governor(governed, claim(home, 0), "restore")
    assert governors(sys_root)[0] == "powersave"


def test_governors_need_the_lease(governed: AgentSession, home: Path, sys_root: Path) -> None:
    before = governors(sys_root)
    take_lease(governed, claim(home, 0))
    with pytest.raises(DeviceTrouble) as caught:
        set_governor(governed, claim(home, 1), "performance")
    assert caught.value.kind is TroubleKind.LEASED and governors(sys_root) == before


def test_a_machine_without_governors_is_left_as_it_is(governed: AgentSession, home: Path, sys_root: Path) -> None:
    shutil.rmtree(sys_root)
    set_governor(governed, claim(home, 0), "performance")
    assert not sys_root.exists()


def test_frequencies_and_temperatures_are_read(governed: AgentSession, sys_root: Path) -> None:
    seen = sense_device(governed, [0])
    (core,) = seen.cores
    assert (core.core, core.governor, core.max_hz) == (0, "ondemand", 2.4e9)
    (zone,) = seen.temperatures
    assert (zone.zone, zone.type, zone.celsius) == (3, "cpu-thermal", 45.5)
    assert seen.free_bytes > 0 and seen.uptime_s > 0 and seen.boot
    probe = probe_device(governed)
    assert len(probe.cores) == (os.cpu_count() or 1) and probe.cores[0].max_hz == 2.4e9
    assert probe.machine == os.uname().machine and probe.kernel == os.uname().release
    assert not probe.android and probe.temperature_zones == seen.temperatures and probe.boot == seen.boot


def test_what_a_phone_shows_of_its_dsp(governed: AgentSession, sys_root: Path) -> None:
    nothing = probe_device(governed)
    assert nothing.dsp == DspProbe()
    phone = sys_root / "phone"
    for folder in ("dev", "vendor/lib/rfsa/adsp", "system/lib/rfsa/adsp"):
        (phone / folder).mkdir(parents=True)
    for file in ("dev/adsprpc-smd", "vendor/lib/rfsa/adsp/libother.so", "system/lib/rfsa/adsp/testsig-0x1.so"):
        (phone / file).touch()
    probe = probe_device(governed)
    assert probe.dsp == DspProbe((FastRpcNode("/dev/adsprpc-smd", usable=True),), "/system/lib/rfsa/adsp")


def test_what_a_killed_owner_left_is_deleted_by_who_follows_with_its_token(agent: AgentSession, home: Path) -> None:
    def open_session(name: str, who: int, slot: int = 0, first: bool = False) -> set[str]:
        fields = [("session", name), *claim(home, who, slot).fields()]
        agent.ask("open", [*fields, ("first", "1")] if first else fields)
        return {folder.name for folder in (home / agent.root).glob("s-*")}

    open_session("a1", 0)
    (home / agent.root / "s-a1" / "kernel").write_bytes(bytes(1000))
    open_session("b1", 1, slot=1)
    assert open_session("a2", 0) == {"s-a1", "s-a2", "s-b1"}, "another session of one that lives"
    assert open_session("a3", 0, first=True) == {"s-a3", "s-b1"}
    assert open_session("a3", 0, first=True) == {"s-a3", "s-b1"}, "asked again, because the reply was lost"
    take_lease(agent, claim(home, 1), force=True)
    assert open_session("b2", 1, first=True) == {"s-a3", "s-b1", "s-b2"}, "neither another token nor another slot"
