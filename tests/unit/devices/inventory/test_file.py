"""`devices.toml` on disk: reading, and edits that leave the rest as it is."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halide_autotune.devices.inventory.file import add_device, load_inventory, remove_device, update_device
from halide_autotune.devices.inventory.inventory import DeviceMachine, InventoryDevice
from halide_autotune.devices.remote_place import RemotePlace, SshAddress
from halide_autotune.targets.errors import DeviceError, UsageError

TEXT = """# our lab

# the kitchen
[devices.a]
profile = "arm64"   # a Pi
transport = "ssh"
address = "a"

[devices.a.machine]
parallelism = 4 # four

# the hall
[devices.b]
profile = "arm64"
transport = "ssh"
address = "b"
# the end of b

# the cellar
[devices."c.d"]
profile = "x86-64"
transport = "adb"
"""


def board(name: str) -> InventoryDevice:
    return InventoryDevice(name, "arm64", RemotePlace(SshAddress(name)))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "devices.toml"
    path.write_text(TEXT)
    return path


def names(file: Path) -> list[str]:
    return [device.name for device in load_inventory(file).devices]


def test_devices_come_in_the_order_of_the_file(file: Path) -> None:
    assert names(file) == ["a", "b", "c.d"]


def test_no_file_is_no_devices(tmp_path: Path) -> None:
    inventory = load_inventory(tmp_path / "none.toml")
    assert inventory.devices == ()
    with pytest.raises(UsageError, match="names none.*sdk devices add"):
        inventory.find("pi")


def test_find_and_labels(file: Path) -> None:
    file.write_text(TEXT.replace('address = "a"', 'address = "a"\nlabels = ["lab"]'))
    inventory = load_inventory(file)
    assert inventory.find("c.d").profile_name == "x86-64"
    assert [device.name for device in inventory.with_label("lab")] == ["a"]
    with pytest.raises(UsageError, match="There is no device 'c.b' .*the nearest is 'c.d'"):
        inventory.find("c.b")
    with pytest.raises(UsageError, match="has the label 'labb'; the nearest is 'lab'"):
        inventory.with_label("labb")


def test_added_devices_come_last_and_the_rest_stays(file: Path) -> None:
    new = replace(board("new"), machine=DeviceMachine(2), probed=(("cpu", "x"),))
    new = replace(new, place=replace(new.place, environment=(("A", "b c"),)))
    add_device(file, new)
    assert file.read_text().startswith(TEXT)
    assert file.read_text()[len(TEXT) :] == (
        '\n[devices.new]\nprofile = "arm64"\ntransport = "ssh"\naddress = "new"\nenvironment = {A = "b c"}\n'
        '\n[devices.new.machine]\nparallelism = 2\n\n[devices.new.probed]\ncpu = "x"\n'
    )
    assert load_inventory(file).find("new") == new
    with pytest.raises(UsageError, match="already has a device 'new'"):
        add_device(file, new)


def test_adding_makes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "devices.toml"
    add_device(path, board("x.y"))
    assert path.read_text() == '[devices."x.y"]\nprofile = "arm64"\ntransport = "ssh"\naddress = "x.y"\n'
    assert [entry.name for entry in path.parent.iterdir()] == ["devices.toml"]


def test_an_update_touches_two_tables(file: Path) -> None:
    update_device(file, "a", DeviceMachine(parallelism=8, l2_cache_bytes=5), (("cpu", "Cortex"), ("cores", (0, 1))))
    text = file.read_text()
    added = 'l2_cache_bytes = 5\n\n[devices.a.probed]\ncpu = "Cortex"\ncores = [0, 1]\n'
    assert text == TEXT.replace("parallelism = 4 # four\n", "parallelism = 8 # four\n" + added)
    update_device(file, "a", DeviceMachine(parallelism=8), (("cpu", "Cortex"), ("cores", (0, 1))))
    assert file.read_text() == text.replace("l2_cache_bytes = 5\n", "")
    update_device(file, "b", DeviceMachine(parallelism=2), ())
    assert "# the end of b\n\n[devices.b.machine]\nparallelism = 2\n\n# the cellar\n" in file.read_text()
    assert load_inventory(file).find("b").machine.parallelism == 2


def test_a_device_goes_with_its_comment_and_no_other(file: Path) -> None:
    remove_device(file, "b")
    assert file.read_text() == TEXT.replace(TEXT[TEXT.index("# the hall") : TEXT.index("# the cellar")], "")
    remove_device(file, "a")
    assert file.read_text() == "# our lab\n\n" + TEXT[TEXT.index("# the cellar") :]
    remove_device(file, "c.d")
    assert (file.read_text(), names(file)) == ("# our lab\n\n", [])
    with pytest.raises(UsageError, match="There is no device 'a'"):
        remove_device(file, "a")


INLINE = '{ profile = "arm64", transport = "ssh", address = "a" }'
FOOLING = TEXT.replace('address = "a"', 'address = "a"\n[devices.a.probed]\nnote = """see \\\n[devices.b] # """')


@pytest.mark.parametrize("text", [f"devices.b = {INLINE}\n", f"[devices]\nb = {INLINE}\n", FOOLING])
def test_what_cannot_be_edited_without_harm_is_left_alone(file: Path, text: str) -> None:
    file.write_text(text)
    assert "b" in names(file)
    with pytest.raises(DeviceError):
        remove_device(file, "b")
    assert file.read_text() == text


def test_a_link_stays_a_link_and_a_mode_stays(file: Path, tmp_path: Path) -> None:
    file.chmod(0o600)
    link = tmp_path / "link.toml"
    link.symlink_to(file)
    add_device(link, board("new"))
    assert link.is_symlink()
    assert "new" in names(file)
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"[devices.a]\n\xff", "byte 12 is not UTF-8"),
        (b"a = ", "not valid TOML"),
        (b"#" * 1048577, "more than 1048576 bytes"),
        (b"[device.a]\nx = 1", "unknown key 'device'; the nearest is 'devices'"),
        (b"devices = 3", "'devices' must be a table"),
        (b"[devices]\npi = 3", "device 'pi': it must be a table, not an integer"),
        (b"x=" + b"[" * 100000, "nested too deeply"),
        (
            b"".join(b"[devices.a%d]\n" % number for number in range(1001)),
            "a table of at most 1000 keys",
        ),
        (TEXT.encode() + b'[devices."b.1"]\nprofile="x"\ntransport="adb"\n', None),
    ],
)
def test_files_that_are_no_inventory(file: Path, content: bytes, expected: str | None) -> None:
    file.write_bytes(content)
    if expected is None:
        file.write_text(file.read_text().replace('address = "b"', 'address = "b"\nslots = 2\ncores = [0, 1]'))
        expected = "device 'b.1' has the name of a slot of 'b'"
    with pytest.raises(DeviceError) as caught:
        load_inventory(file)
    assert str(file) in caught.value.message
    assert expected in caught.value.message


def test_a_byte_order_mark_and_windows_line_ends_are_read(file: Path) -> None:
    expected = load_inventory(file)
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    assert load_inventory(file) == expected
    add_device(file, board("new"))
    assert names(file)[-1] == "new"


def test_a_folder_is_no_inventory(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=r"cannot be read \(Is a directory\)"):
        load_inventory(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(DeviceError, match="cannot be written"):
        add_device(tmp_path / "file" / "devices.toml", board("a"))


def test_many_writers_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "devices.toml"
    program = (
        "import sys; from pathlib import Path\n"
        "from halide_autotune.devices.inventory.inventory import InventoryDevice\n"
        "from halide_autotune.devices.inventory.file import add_device\n"
        "from halide_autotune.devices.remote_place import RemotePlace, SshAddress\n"
        "place = RemotePlace(SshAddress('h'))\n"
        "for n in range(10): add_device(Path(sys.argv[1]), InventoryDevice(f'{sys.argv[2]}{n}', 'p', place))"
    )
    root = Path(__file__).parents[4]
    writers = [subprocess.Popen([sys.executable, "-c", program, str(path), who], cwd=root) for who in "abc"]
    assert [writer.wait(240) for writer in writers] == [0, 0, 0]
    assert sorted(names(path)) == sorted(f"{who}{number}" for who in "abc" for number in range(10))
    assert [entry.name for entry in tmp_path.iterdir()] == ["devices.toml"]


comments = st.lists(st.sampled_from(["# one", "", "  # [devices.a]", "#", "\t"]), max_size=4)


@settings(max_examples=50)
@given(data=st.data())
def test_edits_keep_every_comment_of_the_others(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    text = ""
    for name in "abc":
        text += "".join(line + "\n" for line in data.draw(comments))
        text += f'[devices.{name}]\nprofile = "arm64"\ntransport = "ssh"\naddress = "{name}"\n'
        if data.draw(st.booleans()):
            text += f"[devices.{name}.machine] # {name}\nparallelism = 3\n"
    path = tmp_path_factory.mktemp("inventory") / "devices.toml"
    path.write_text(text)
    before = load_inventory(path)
    update_device(path, "b", DeviceMachine(parallelism=3, l2_cache_bytes=7), (("cpu", "x"),))
    kept = [line for line in path.read_text().splitlines() if line.strip().startswith("#") or line.endswith("# b")]
    assert kept == [line for line in text.splitlines() if line.strip().startswith("#") or line.endswith("# b")]
    after = load_inventory(path)
    assert [device for device in after.devices if device.name != "b"] == [
        device for device in before.devices if device.name != "b"
    ]
    remove_device(path, "b")
    assert names(path) == ["a", "c"]
