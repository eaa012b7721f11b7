"""What a device's table may say, and what is said about a wrong one."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.devices.device_link import TRANSPORTS
from halide_autotune.devices.inventory.fields import device_fields, read_device
from halide_autotune.devices.inventory.inventory import DeviceMachine, InventoryDevice, machine_profile
from halide_autotune.devices.remote_place import AdbAddress, PasswordSource, RemotePlace, SshAddress, UrlAddress
from halide_autotune.targets.errors import DeviceError
from halide_autotune.targets.profile.loader import load_profile
from tests.installed_package import install_package

PROFILES = ("arm64", "x86-64")
RESERVED = ("local", "qemu", "hexagon-sim")
SSH = 'profile = "arm64"\ntransport = "ssh"\naddress = "pi@board:22"\n'
ADB = 'profile = "arm64"\ntransport = "adb"\n'


def device(text: str, name: str = "pi5") -> InventoryDevice:
    return read_device(name, tomllib.loads(text), "devices.toml", PROFILES)


def test_everything_an_ssh_device_can_say() -> None:
    found = device(
        SSH
        + """
        identity_file = "~/.ssh/lab"
        jump = ["ann@gw.lab:2222", "inner"]
        password = "keyring"
        labels = ["pi", "kitchen"]
        slots = 2
        cores = "2-3,6, 7"
        environment = { OMP_NUM_THREADS = "2", EMPTY = "" }
        folder = "/data/bench"
        lease_folder = "/run/x"
        emulated = true
        performance_mode = false
        [machine]
        parallelism = 4
        [probed]
        cpu = "Cortex-A76"
        at = 2026-01-02T03:04:05Z
        temperatures = [41.5, 40]
        """
    )
    assert found == InventoryDevice(
        name="pi5",
        profile_name="arm64",
        place=RemotePlace(
            SshAddress("board", 22, "pi", Path("~/.ssh/lab"), ("ann@gw.lab:2222", "inner"), PasswordSource.KEYRING),
            cores=(2, 3, 6, 7),
            environment=(("OMP_NUM_THREADS", "2"), ("EMPTY", "")),
            folder="/data/bench",
            lease_folder="/run/x",
            performance_mode=False,
        ),
        labels=("pi", "kitchen"),
        slots=2,
        emulated=True,
        machine=DeviceMachine(parallelism=4),
        probed=(("cpu", "Cortex-A76"), ("at", "2026-01-02T03:04:05+00:00"), ("temperatures", (41.5, 40))),
    )
    names = [name for name, _ in found.places()]
    places = [place for _, place in found.places()]
    assert names == ["pi5.1", "pi5.2"]
    assert [(place.slot, place.cores) for place in places] == [(0, (2, 3)), (1, (6, 7))]
    assert {place.folder for place in places} == {"/data/bench"}


def test_android_devices() -> None:
    assert device(ADB).place.address == AdbAddress()
    assert device(ADB + 'serial = "R58M123"').place.address == AdbAddress(serial="R58M123")
    assert device(ADB + 'address = "10.0.0.2"').place.address == AdbAddress("10.0.0.2", 5555)
    assert [name for name, _ in device(ADB).places()] == ["pi5"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "the key 'profile' is missing"),
        ('profile = "arm64"', "the key 'transport' is missing; expected one of ssh, adb"),
        ('profile = "arm64"\ntransport = "ssh"', "the key 'address' is missing"),
        (SSH.replace("arm64", "arm46"), "there is no target profile 'arm46'; the nearest is 'arm64'"),
        (SSH.replace("ssh", "shh"), "one of ssh, adb, not 'shh'; the nearest is 'ssh'"),
        (SSH.replace("pi@board:22", "pi@board:22x"), "'pi@board:22x' is not an SSH address; expected [user@]host"),
        (SSH + "lables = []", "unknown key 'lables'; the nearest is 'labels'"),
        (SSH + 'serial = "x"', "key 'serial' belongs to transport \"adb\" alone"),
        (ADB + 'password = "prompt"', "key 'password' belongs to transport \"ssh\" alone"),
        (ADB + 'folder = "bench"', "must be an absolute path on an Android device"),
        (SSH + 'password = "hunter2"', "must be one of prompt, keyring"),
        (SSH + 'jump = "gw"', "key 'jump' must be a list, not a string"),
        (SSH + 'jump = ["-gw"]', "'-gw' is not an SSH address"),
        (SSH + "jump = [3]", "must be a string, not an integer"),
        (SSH + 'labels = ["two words"]', "without white space"),
        (SSH + 'labels = ["a", "a"]', "'a' is in it twice"),
        (SSH + "slots = 0", "an integer from 1 to 64, not 0"),
        (SSH + "slots = true", "not true or false"),
        (SSH + "slots = 2", "slots = 2 needs the key 'cores'"),
        (SSH + "slots = 2\ncores = [1, 2, 3]", "3 cores cannot be shared equally between 2 slots"),
        (SSH + "cores = [1, 1]", "key 'cores' must be a list without repetition; 1 is in it twice"),
        (SSH + 'cores = "3-1"', "ranges from a lower to a higher core"),
        (SSH + 'cores = "1;2"', "a list such as [2, 3]"),
        (SSH + 'cores = "0-9999"', "at most 4095"),
        (SSH + "cores = []", "at least one core"),
        (SSH + "cores = 3", "not an integer"),
        (SSH + "cores = [-1]", "an integer from 0 to 4095, not -1"),
        (SSH + f"cores = [1{'0' * 4000}]", "a number of more than 20 digits"),
        (SSH + 'environment = { "A B" = "x" }', "a variable's name such as OMP_NUM_THREADS, not 'A B'"),
        (SSH + "environment = { A = 3 }", "key 'environment.A' must be a string, not an integer"),
        (SSH + 'environment = ["A=3"]', "key 'environment' must be a table, not a list"),
        (SSH + 'folder = "/data/$(reboot)"', "it reaches the device's shell"),
        (SSH + 'folder = "a/../b"', "without '..'"),
        (SSH + 'folder = "/"', "a path of at most"),
        (SSH + 'folder = "a b"', "a path of at most"),
        (SSH + 'folder = "-x"', "a path of at most"),
        (SSH + 'lease_folder = "run/x"', "must be an absolute path"),
        (SSH + 'emulated = "yes"', "true or false, not a string"),
        (SSH + "machine = 3", "must be a table, not an integer"),
        (SSH + "[machine]\nparalelism = 3", "the nearest is 'machine.parallelism'"),
        (SSH + "[machine]\nparallelism = 0", "key 'machine.parallelism' must be an integer from 1 to 65536"),
        (
            SSH + "[probed]\ncpu = { a = 1 }",
            "key 'probed.cpu' must be a string, a finite number",
        ),
        (
            SSH + "[probed]\nload = nan",
            "finite number, or true or false, not nan",
        ),
        (SSH + 'address2 = "x"', "the nearest is 'address'"),
    ],
)
def test_refusals_name_file_device_key_and_expectation(text: str, expected: str) -> None:
    with pytest.raises(DeviceError) as caught:
        device(text)
    assert caught.value.message.startswith("devices.toml: device 'pi5'")
    assert expected in caught.value.message


@pytest.mark.parametrize("name", [*RESERVED, "", ".x", "a b", "a:b", "a/b", "x" * 65, "ä", "a\n"])
def test_names_of_devices(name: str) -> None:
    with pytest.raises(DeviceError, match=r"^devices\.toml: "):
        device(SSH, name)


def test_a_name_with_a_dot_is_explained() -> None:
    with pytest.raises(DeviceError, match="a device's name with a dot stands in quotes"):
        device('[lab]\nprofile = "arm64"\ntransport = "ssh"')


def test_the_profile_takes_what_was_probed() -> None:
    profile = load_profile("arm64")
    plain = machine_profile(profile, device(SSH))
    assert plain == profile
    probed = machine_profile(profile, device(SSH + "[machine]\nparallelism = 8\nl2_cache_bytes = 524288"))
    assert (probed.machine.parallelism, probed.machine.l2_cache_bytes) == (8, 524288)
    assert probed.machine.l1_data_cache_bytes == profile.machine.l1_data_cache_bytes
    shared = machine_profile(profile, device(SSH + "slots = 2\ncores = [0, 1, 2, 3]\n[machine]\nparallelism = 8"))
    assert shared.machine.parallelism == 2
    assert machine_profile(profile, device(SSH + 'cores = "0-7"')).machine.parallelism == 8


def test_what_may_be_a_password_is_not_shown() -> None:
    for text in (SSH + 'password = "hunter2"', SSH.replace("pi@board", "pi:hunter2@board")):
        with pytest.raises(DeviceError) as caught:
            device(text)
        assert "hunter2" not in str(caught.value)


def test_cores_as_text() -> None:
    assert device(SSH + 'cores = "2-3,6"').place.cores == (2, 3, 6)
    with pytest.raises(DeviceError, match="key 'cores' .*2 is in it twice"):
        device(SSH + 'cores = "2,1-3"')


words = st.text("abcXYZ019._-", min_size=1, max_size=12)
lines = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=12)
facts = st.one_of(st.booleans(), st.integers(-(2**62), 2**62), st.floats(allow_nan=False, allow_infinity=False), lines)
caches = st.none() | st.integers(1, 2**40)
ssh_addresses = st.builds(
    SshAddress,
    host=st.from_regex(r"[a-z][a-z0-9.-]{0,10}", fullmatch=True) | st.just("fe80::2"),
    port=st.none() | st.integers(1, 65535),
    user=st.none() | st.from_regex(r"[a-z@_]{1,8}", fullmatch=True),
    identity_file=st.none() | st.builds(Path, st.from_regex(r"~?/[a-z ]{0,5}/[a-z]{1,5}", fullmatch=True)),
    jump=st.lists(st.from_regex(r"[a-z]{1,5}@[a-z]{1,5}:22", fullmatch=True), max_size=3, unique=True).map(tuple),
    password_source=st.sampled_from(PasswordSource),
)
adb_addresses = st.builds(AdbAddress, host=st.just("10.0.0.9"), port=st.integers(1, 65535), serial=st.none() | words)
places = st.builds(
    RemotePlace,
    address=ssh_addresses | adb_addresses | st.builds(AdbAddress, serial=st.none() | words),
    folder=st.none() | st.from_regex(r"/[a-z]{1,5}/[a-z.]{1,5}x", fullmatch=True).filter(lambda path: ".." not in path),
    lease_folder=st.none() | st.just("/run/leases"),
    cores=st.lists(st.integers(0, 4095), max_size=6, unique=True).map(tuple),
    environment=st.dictionaries(st.from_regex(r"[A-Z_]{1,5}", fullmatch=True), lines | st.just(""), max_size=3).map(
        lambda table: tuple(table.items())
    ),
    performance_mode=st.booleans(),
)
devices = st.builds(
    InventoryDevice,
    name=st.from_regex(r"[a-z0-9][a-z0-9._-]{0,10}", fullmatch=True).filter(lambda name: name not in RESERVED),
    profile_name=st.sampled_from(PROFILES),
    place=places,
    labels=st.lists(words, max_size=3, unique=True).map(tuple),
    slots=st.just(1),
    emulated=st.booleans(),
    machine=st.builds(DeviceMachine, st.none() | st.integers(1, 65536), caches, caches, caches),
    probed=st.dictionaries(words, facts | st.lists(facts, max_size=3).map(tuple), max_size=4).map(
        lambda table: tuple(table.items())
    ),
)


@given(devices)
def test_what_is_written_is_what_is_read(given: InventoryDevice) -> None:
    assert read_device(given.name, device_fields(given), "x", PROFILES) == given


values = st.recursive(
    st.none() | facts | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
keys = st.sampled_from(sorted("profile transport address serial jump labels slots cores environment machine".split()))


@given(st.dictionaries(keys | st.text(max_size=8), values, max_size=4))
def test_no_table_breaks_the_reader(table: dict[str, object]) -> None:
    complete = {"profile": "arm64", "transport": "ssh", "address": "x", **table}
    try:
        found = read_device("pi", complete, "x", PROFILES)
    except DeviceError as error:
        assert error.message.startswith("x: device 'pi'") and "\n" not in error.message
    else:
        assert read_device("pi", device_fields(found), "x", PROFILES) == found


# Behind the transport of a package


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with the transport `lab` is installed; nothing of it may be imported."""
    install_package(tmp_path, "lab", {TRANSPORTS.group: {"lab": "no_such_module:Lab"}}, {}, monkeypatch)


def test_a_url_names_its_transport(lab: None) -> None:
    found = device('profile = "arm64"\naddress = "lab://rack3/7"\nlabels = ["pi"]\n')
    assert found == device('profile = "arm64"\ntransport = "lab"\naddress = "lab://rack3/7"\nlabels = ["pi"]\n')
    assert (found.transport, found.place.address) == ("lab", UrlAddress("lab://rack3/7"))
    assert read_device("pi5", device_fields(found), "devices.toml", PROFILES) == found
    assert found.devices(4)[0].kind == "lab"


def test_a_transport_that_nobody_has_may_be_installed() -> None:
    with pytest.raises(DeviceError, match="must be one of ssh, adb, not 'lab'") as caught:
        device('profile = "arm64"\naddress = "lab://rack3/7"')
    assert caught.value.next_step == "Correct it, or install the package that has the transport."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('address = "lob://rack3/7"', "key 'transport' must be one of ssh, adb, lab, not 'lob'; the nearest is 'lab'"),
        ('transport = "lab"', "the key 'address' is missing; expected lab://"),
        ('transport = "lab"\naddress = "pi@board"', "is not the URL of a device"),
        ('transport = "lab"\naddress = "other://board"', "must be a URL that starts with lab://"),
        ('address = "lab://x"\npassword = "prompt"', "key 'password' belongs to another transport"),
        ('address = "lab://x"\nserial = "x"', "key 'serial' belongs to another transport"),
    ],
)
def test_refusals_of_what_a_packages_transport_cannot_have(lab: None, text: str, expected: str) -> None:
    with pytest.raises(DeviceError) as caught:
        device(f'profile = "arm64"\n{text}')
    assert caught.value.message.startswith("devices.toml: device 'pi5'") and expected in caught.value.message
