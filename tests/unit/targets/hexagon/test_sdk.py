"""What is seen of a Hexagon SDK: a folder laid out as one, none of whose programs is started."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from halide_autotune.targets.errors import ToolchainError
from halide_autotune.targets.hexagon.sdk import find_hexagon_sdk
from tests.stand_in_hexagon_sdk import make_stand_in_hexagon_sdk


def test_everything_is_found(tmp_path: Path) -> None:
    root = make_stand_in_hexagon_sdk(tmp_path / "4.5.0.3")
    found = find_hexagon_sdk(root)
    assert found.describe() == "4.5.0.3 with tools 8.5.13, for v65, v66, v68"
    assert found.missing() == ()
    assert found.simulator == found.compiler.with_name("hexagon-sim")


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    root = make_stand_in_hexagon_sdk(tmp_path / "sdk")
    found = find_hexagon_sdk(root)
    skeletons = [path for _, path in found.skeletons]
    for path in (found.simulator, found.device_runner, found.signer, *skeletons):
        assert path is not None
        path.unlink()
    (root / "tools" / "HEXAGON_Tools" / "9.0").mkdir()  # newer, and empty
    bare = find_hexagon_sdk(root)
    assert bare == dataclasses.replace(found, simulator=None, device_runner=None, skeletons=(), signer=None)
    assert bare.describe().startswith("of unknown version with tools 8.5.13")
    assert [part.split()[0] for part in bare.missing()] == ["the", "a"]


def test_what_runs_programs_on_devices_is_found_where_older_releases_put_it(tmp_path: Path) -> None:
    root = make_stand_in_hexagon_sdk(tmp_path / "3.5.4")
    shipped = root / "libs" / "run_main_on_hexagon" / "ship"
    common = root / "libs" / "common" / "run_main_on_hexagon" / "ship"
    common.parent.mkdir(parents=True)
    shipped.rename(common)
    for old, new in (
        ("android_aarch64", "android_Release_aarch64"),
        ("hexagon_toolv84_v66", "hexagon_Release_dynamic_toolv83_v66"),
        ("hexagon_toolv84_v65", "hexagon_notes_v65"),
    ):
        (common / old).rename(common / new)
    (common / "UbuntuARM_Release_aarch64").mkdir()
    (common / "UbuntuARM_Release_aarch64" / "run_main_on_hexagon").write_text("for another system")
    found = find_hexagon_sdk(root)
    assert found.device_runner == common / "android_Release_aarch64" / "run_main_on_hexagon"
    folders = {version: path.parent.name for version, path in found.skeletons}
    assert folders == {"v66": "hexagon_Release_dynamic_toolv83_v66", "v68": "hexagon_toolv84_v68"}


@pytest.mark.parametrize("place", ["nowhere", "empty", "file"])
def test_a_folder_that_is_none(place: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(ToolchainError) as caught:
        find_hexagon_sdk(tmp_path / place)
    assert str(tmp_path / place) in caught.value.message and "hexagon-clang" in caught.value.message
    assert "HEXAGON_SDK_ROOT" in caught.value.next_step
