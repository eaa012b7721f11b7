"""The installed wheel, in a folder whose modules have the names of our folders: nothing of theirs is imported."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from halide_autotune.sdk.settings import Settings

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

PROJECT = Path(__file__).parents[2]
OURS = ("targets", "devices", "weights", "autotune_loop", "sdk")
SMALL = ("-p", "width=128", "-p", "height=64")
COMMAND = ("-m", "halide_autotune.sdk.main")
Run = Callable[..., str]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the wheel installs."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    build = ("wheel", "--no-deps", "-w", str(folder), str(PROJECT))
    subprocess.run([*pip, *build], check=True, timeout=300)
    (wheel,) = folder.glob("*.whl")
    subprocess.run(
        [*pip, "install", "--no-deps", "--target", str(folder / "site"), str(wheel)], check=True, timeout=300
    )
    return folder / "site"


@pytest.fixture
def folder(tmp_path: Path, examples: Path) -> Path:
    """A user's folder: modules of theirs that end a process which imports them, and a generator."""
    for number, name in enumerate(OURS):
        place = tmp_path / name / "__init__.py" if number % 2 else tmp_path / f"{name}.py"
        place.parent.mkdir(exist_ok=True)
        place.write_text(f"raise SystemExit('the user has a {name}')\n")
    shutil.copy(examples / "separable_filter.py", tmp_path / "blur.py")
    return tmp_path


@pytest.fixture
def run(installed: Path, folder: Path, settings: Settings) -> Run:
    """Runs Python in the user's folder, which is on PYTHONPATH, too: before the wheel if it is to be first."""

    def started(*command: str, first: bool = True) -> str:
        paths = [str(folder), str(installed)] if first else [str(installed), str(folder)]
        environment = {**settings.environment, "PYTHONPATH": os.pathsep.join(paths)}
        done = subprocess.run(
            [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return started


@pytest.mark.parametrize("first", [False, True])
def test_the_command_takes_its_own_modules(run: Run, installed: Path, first: bool) -> None:
    assert run(*COMMAND, "--version", first=first).startswith("sdk ")
    where = "import halide_autotune.sdk.main as main; print(main.__file__)"
    assert run("-c", where, first=first).startswith(str(installed))


def test_the_wheel_has_two_names_and_types(installed: Path) -> None:
    tops = {path.name for path in installed.iterdir() if not path.name.endswith((".dist-info", "bin", "__pycache__"))}
    assert tops == {"halide_autotune", "sdk"}
    for name in OURS:
        assert (installed / "halide_autotune" / name / "py.typed").is_file()
    assert (installed / "sdk" / "py.typed").is_file()


def test_a_pipeline_is_built_tuned_shipped_and_reported(run: Run, folder: Path) -> None:
    run(*COMMAND, "build", "blur.py", *SMALL, "-o", "built")
    assert (folder / "built" / "separable_filter.o").is_file()
    # The tests beside this one disturb it, and it need not wait for them to end.
    small = (*SMALL, "-n", "1", "--batch-size", "4", "--quiet-patience", "1s")
    assert json.loads(run(*COMMAND, "autotune", "blur.py", *small, "--run-dir", "run", "--json", "--quiet"))
    run(*COMMAND, "report", "run", "-o", "page.html")
    run(*COMMAND, "ship", "run", "-o", "schedules", "--no-sizes", "--allow-unconfirmed")
    assert (folder / "schedules" / "ship.json").is_file()


def test_a_script_beside_a_devices_py_uses_the_api(run: Run, folder: Path) -> None:
    (folder / "sdk.py").unlink()
    script = "from pathlib import Path\n\nimport sdk\n\nprint(sdk.build('blur.py', Path('built')).object.name)\n"
    (folder / "script.py").write_text(script)
    assert run("script.py") == "separable_filter.o\n"
