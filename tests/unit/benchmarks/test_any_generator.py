"""What came of other people's generators is kept, counted and shown."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import patch

from benchmarks import any_generator
from benchmarks.any_generator import Outcome, summary, tables

TUNED = Outcome("owner/name", "blur.cpp:blur", than="own", times=1.5, tuned_ms=2.0)
LATE = Outcome("owner/name", "big.cpp:big", "not done within 240 s", late=True)
STOPPED = Outcome("halide/Halide", "odd.cpp:odd", "Give this | that.")


def test_what_needs_longer_is_neither_tuned_nor_stopped() -> None:
    assert [each.kind for each in (TUNED, LATE, STOPPED)] == ["tuned", "late", "stopped"]
    assert summary([TUNED, LATE, STOPPED]) == (
        "1 of 3 are tuned, 1 would have needed longer; 2 are from other repositories than halide/Halide."
    )
    assert summary([TUNED]) == "1 of 1 are tuned; 1 are from other repositories than halide/Halide."


def test_each_repository_has_a_table() -> None:
    text = tables([STOPPED, TUNED])
    assert text.index("### halide/Halide") < text.index("### owner/name")
    assert "| `odd.cpp:odd` | Give this \\| that. |  |" in text
    assert "| `blur.cpp:blur` | tuned | 1.50 × as fast as own |" in text


def test_the_log_of_what_failed_is_left_out() -> None:
    cause, log = "The kernels call dft, which nothing defines", "x" * 400
    row = Outcome("owner/name", "a.cpp:a", f"{cause}. It does not link: {log}.").row
    assert cause in row and "does not link" not in row


def test_the_page_keeps_its_text_and_gets_the_tables(tmp_path: Path) -> None:
    page, results = tmp_path / "page.md", tmp_path / "results.json"
    page.write_text("Before.\n<!-- tables -->\nold\n<!-- end of tables -->\nAfter.\n")
    key = "halide/Halide apps/blur/halide_blur_generator.cpp:halide_blur"
    kept = {"repository": "halide/Halide", "generator": "halide_blur", "tuned_ms": 1.0}
    results.write_text(json.dumps({key: kept}))
    with patch("sys.argv", ["any_generator", "--results", str(results), "--page", str(page)]):
        assert any_generator.main() == 0
    text = page.read_text()
    assert text.startswith("Before.\n<!-- tables -->\n") and text.endswith("<!-- end of tables -->\nAfter.\n")
    assert "old" not in text and "| `halide_blur` | tuned |  |" in text
