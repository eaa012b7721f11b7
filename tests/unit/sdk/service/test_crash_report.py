"""What is kept of an unexpected error."""

from __future__ import annotations

from pathlib import Path

import pytest

from halide_autotune.sdk.service.crash_report import save_crash_report


def test_a_report_has_the_command_line_without_what_may_be_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDK_CACHE_DIR", str(tmp_path))
    url = "https://me:pass@hooks.example:8443/T0/s3cr3t?key=s3cr3t"
    place = save_crash_report(ValueError("x"), ["autotune", "a b.py", f"--notify={url}", "--notify", url])
    first, *rest = Path(place).read_text().splitlines()
    assert first == "sdk autotune 'a b.py' --notify=https://hooks.example:8443 --notify https://hooks.example:8443"
    assert "s3cr3t" not in "".join(rest)
