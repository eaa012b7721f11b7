"""The example of extensions: its own tests pass, with the entry points of its pyproject.toml, without installing it."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from halide_autotune.sdk.settings import Settings
from tests.installed_package import write_package

# The check of a transport builds the agent.
pytestmark = pytest.mark.toolchain

PROJECT = Path(__file__).parents[3]


def test_its_own_tests_pass(examples: Path, tmp_path: Path, settings: Settings) -> None:
    package = examples / "extensions"
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    write_package(tmp_path, project["name"], project["entry-points"])
    path = os.pathsep.join(map(str, (tmp_path, package, PROJECT / "src")))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", str(package)],
        env={**settings.environment, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=package,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout and "skipped" not in done.stdout
