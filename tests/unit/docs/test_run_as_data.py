"""The page about a run as data: its code works on any run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.recorded_run_folder import write_run_folder

PAGE = Path(__file__).parents[3] / "docs" / "run-as-data.md"


def test_every_block_prints_what_stands_below_it_of_another_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run_folder(tmp_path / "tuned" / "blur", samples=40)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    assert len(blocks) == PAGE.read_text().count("```python")
    for code, shown in blocks:
        exec(code, names)
        printed = capsys.readouterr().out
        # The times are another run's; titles and columns are not.
        assert printed.strip() and (printed.split()[0] == shown.split()[0] or "batch" in printed)
    columns = ", ".join(names["frame"].columns)
    assert columns == blocks[0][1].strip()
