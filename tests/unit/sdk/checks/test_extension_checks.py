"""What the doctor says of installed extensions."""

from __future__ import annotations

from pathlib import Path

import pytest

from halide_autotune.sdk.checks.extension_checks import check_extensions
from tests.installed_package import install_package


def test_each_is_listed_with_whether_it_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = {
        "halide_autotune.techniques": {"walk": "lab_checked:Walk", "sketches": "lab_checked:Walk"},
        "halide_autotune.models": {"lost": "lab_lost:Model"},
    }
    install_package(tmp_path, "lab-checked", groups, {"lab_checked": "class Walk: ..."}, monkeypatch)
    checks = {check.name: check for check in check_extensions()}
    assert list(checks) == ["technique sketches", "technique walk", "model lost"]
    assert checks["technique walk"].passed and checks["technique walk"].found == "lab_checked:Walk, of lab-checked 1.0"
    assert "has the name of a built-in one" in checks["technique sketches"].found
    assert "No module named 'lab_lost'" in checks["model lost"].found
    assert not checks["model lost"].passed and checks["model lost"].fix
