from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from halide_autotune.targets.errors import ToolchainError
from halide_autotune.targets.halide_install import HalideInstall, find_halide_install
from halide_autotune.targets.process.content_cache import file_sha256


@pytest.fixture
def install() -> HalideInstall:
    return find_halide_install()


def test_finds_all_parts(install: HalideInstall) -> None:
    assert (install.include_dir / "HalideRuntime.h").is_file()
    assert install.gengen_library.is_file()
    assert install.library.is_file()
    assert (install.tools_dir / "halide_benchmark.h").is_file()
    assert (install.bin_dir / "gengen").is_file()
    assert install.version.startswith("21.")
    assert install.version in install.fingerprint()


def test_finding_does_not_import_halide() -> None:
    program = (
        "import sys; from halide_autotune.targets.halide_install import find_halide_install; find_halide_install();"
        "sys.exit('halide' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("name", ["Adams2019", "adams2019", "Anderson2021", "Li2018", "Mullapudi2016"])
def test_plugins(install: HalideInstall, name: str) -> None:
    path = install.plugin_path(name)
    assert path == install.lib_dir / f"libautoschedule_{name.lower()}.so"
    assert install.plugin_sha256(name) == file_sha256(path)


def test_an_unknown_autoscheduler_gets_the_nearest_name(install: HalideInstall) -> None:
    with pytest.raises(ToolchainError, match=r"no autoscheduler 'Adams2018'\. Did you mean Adams2019\?"):
        install.plugin_path("Adams2018")
    with pytest.raises(ToolchainError, match="There are: Adams2019, Anderson2021, Li2018, Mullapudi2016"):
        install.plugin_path("../etc/passwd")


def test_missing_halide_says_how_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "halide", raising=False)
    with pytest.raises(ToolchainError, match=r"not installed in this Python\. Install it with: pip install"):
        find_halide_install()


def test_another_package_called_halide_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "halide").mkdir()
    (tmp_path / "halide" / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "halide", raising=False)
    with pytest.raises(ToolchainError, match="not Halide's wheel"):
        find_halide_install()
