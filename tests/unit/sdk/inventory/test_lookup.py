"""Which inventory counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from halide_autotune.sdk.inventory.lookup import find_inventory_file, open_inventory
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import DeviceError, UsageError

PI = '[devices.pi]\nprofile = "arm64"\ntransport = "ssh"\naddress = "pi"\n'


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    (tmp_path / "project" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project" / "deep")
    config = tmp_path / "config"
    return Settings(tmp_path / "cache", config, config / "profiles", {"HOME": str(tmp_path)})


def test_the_nearer_file_wins(folders: Settings, tmp_path: Path) -> None:
    project = tmp_path / "project"
    assert find_inventory_file(None, folders) == folders.config_folder / "devices.toml"
    assert open_inventory(None, folders).devices == ()
    (project / "devices.toml").write_text(PI)
    assert find_inventory_file(None, folders) == project / "devices.toml"
    (project / "deep" / "devices.toml").write_text("")
    assert find_inventory_file(None, folders) == project / "deep" / "devices.toml"
    (project / "sdk.toml").write_text('inventory = "lab/boards.toml"')
    assert find_inventory_file(None, folders) == project / "lab" / "boards.toml"
    assert find_inventory_file(Path("mine.toml"), folders) == project / "deep" / "mine.toml"


def test_a_file_that_was_named_must_be_there(folders: Settings, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"There is no inventory .*mine\.toml"):
        open_inventory(Path("mine.toml"), folders)
    with pytest.raises(UsageError, match="There is no inventory"):
        open_inventory(Path("x" * 300), folders)
    (tmp_path / "project" / "sdk.toml").write_text('inventory = "lab.toml"')
    with pytest.raises(UsageError, match=r"There is no inventory .*lab\.toml"):
        open_inventory(None, folders)


def test_profiles_are_checked_with_the_users_own(folders: Settings, tmp_path: Path) -> None:
    file = tmp_path / "project" / "devices.toml"
    file.write_text(PI.replace("arm64", "board"))
    with pytest.raises(DeviceError, match="there is no target profile 'board'"):
        open_inventory(None, folders)
    folders.profile_folder.mkdir(parents=True)
    (folders.profile_folder / "board.toml").write_text('extends = "arm64"')
    assert open_inventory(None, folders).find("pi").profile_name == "board"


def test_names_and_labels_choose_devices_once(folders: Settings, tmp_path: Path) -> None:
    (tmp_path / "project" / "devices.toml").write_text(
        PI + 'labels = ["lab"]\n' + PI.replace(".pi]", ".b]") + 'labels = ["lab"]\n' + PI.replace(".pi]", ".c]")
    )
    inventory = open_inventory(None, folders)
    assert [device.name for device in inventory.choose(["c", "label:lab", "pi"])] == ["c", "pi", "b"]
    with pytest.raises(UsageError, match="label 'x'"):
        inventory.choose(["label:x"])
