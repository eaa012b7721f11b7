"""Which farm a command means, and the units that the documentation gives."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from halide_autotune.sdk.project.file import find_project
from halide_autotune.sdk.select.farm_choice import choose_farm
from halide_autotune.sdk.service.farm_worker import open_farm_worker
from halide_autotune.sdk.settings import Settings, read_settings
from halide_autotune.targets.errors import FarmError, UsageError

UNITS = sorted((Path(__file__).parents[4] / "docs" / "systemd").glob("*.service"))


def test_the_scheduler_is_the_one_given_else_the_variables_else_the_projects(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"No scheduler was named. .*\[farm\] scheduler into sdk.toml"):
        choose_farm(None, None, settings)
    (tmp_path / "sdk.toml").write_text('[farm]\nscheduler = "tls://project.example"\n')
    assert choose_farm(None, None, settings).address == "tls://project.example:8786"
    variable = read_settings({"HOME": str(tmp_path), "SDK_SCHEDULER": "tls://variable.example:1234"})
    found = choose_farm(None, None, variable)
    assert found.address == "tls://variable.example:1234" and found.certificates is not None
    assert found.certificates == variable.config_folder / "farm"
    given = choose_farm("tls://[::1]:99", tmp_path / "mine", variable)
    assert given.address == "tls://[::1]:99" and given.certificates == tmp_path / "mine"


@pytest.mark.parametrize("text", ["[farm]\nscheduler = 3\n", '[farm]\naddress = "tls://a"\n', "farm = 1\n"])
def test_a_wrong_table_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "sdk.toml").write_text(text)
    with pytest.raises(UsageError, match="farm"):
        find_project(tmp_path)


def test_one_worker_of_a_name_and_something_to_serve_with(settings: Settings, tmp_path: Path) -> None:
    own = replace(settings, cache_folder=tmp_path / "cache")
    with pytest.raises(UsageError, match="nothing to serve a farm with"), open_farm_worker("lab1", (), 0, own, print):
        pass
    with pytest.raises(UsageError, match="not a valid worker name"), open_farm_worker("../lab1", (), 1, own, print):
        pass
    with open_farm_worker("lab1", (), 1, own, print) as farm_worker:
        left = farm_worker.workspace.work_folder / "left behind"
        left.mkdir()
        with (
            pytest.raises(FarmError, match="A worker called lab1 already runs on this machine"),
            open_farm_worker("lab1", (), 1, own, print),
        ):
            pass
    with open_farm_worker("lab1", (), 3, own, print) as farm_worker:
        assert not left.exists() and farm_worker.build_slots == 3 and not farm_worker.devices


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_the_units_of_the_documentation_are_units(tmp_path: Path) -> None:
    assert len(UNITS) == 2
    for unit in UNITS:
        installed = tmp_path / unit.name
        installed.write_text(unit.read_text().replace("/opt/sdk/bin/sdk", sys.executable))
        done = subprocess.run(["systemd-analyze", "verify", installed], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
