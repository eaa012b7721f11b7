"""What is seen of a Hexagon SDK: a folder laid out as one, none of whose programs is started."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from targets.errors import ToolchainError
from targets.hexagon_sdk import find_hexagon_sdk
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
    for path in (found.simulator, found.device_runner, found.signer):
        assert path is not None
        path.unlink()
    (root / "tools" / "HEXAGON_Tools" / "9.0").mkdir()  # newer, and empty
    bare = find_hexagon_sdk(root)
    assert bare == dataclasses.replace(found, simulator=None, device_runner=None, signer=None)
    assert bare.describe().startswith("of unknown version with tools 8.5.13")
    assert [part.split()[0] for part in bare.missing()] == ["the", "run_main_on_hexagon", "a"]


@pytest.mark.parametrize("place", ["nowhere", "empty", "file"])
def test_a_folder_that_is_none(place: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(ToolchainError) as caught:
        find_hexagon_sdk(tmp_path / place)
    assert str(tmp_path / place) in caught.value.message and "hexagon-clang" in caught.value.message
    assert "HEXAGON_SDK_ROOT" in caught.value.next_step
