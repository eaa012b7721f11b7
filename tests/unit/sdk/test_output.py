"""What is printed on terminals and into logs that lack letters or colours."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from halide_autotune.sdk.output import accept_every_text, make_console

ROOT = Path(__file__).parents[3]


def test_a_log_that_cannot_hold_a_letter_gets_another(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    accept_every_text()
    print("größer: 2.85× – ±3 % …", "\udcff", flush=True)
    assert raw.getvalue() == b"gr??er: 2.85x - +-3 % ... ?\n"


def test_what_a_c_locale_passes_on_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="utf-8", errors="surrogateescape"))
    accept_every_text()
    print("×\udcff", flush=True)
    assert raw.getvalue() == "×".encode() + b"\xff\n"


def test_a_console_has_only_letters_that_its_encoding_has(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.panel import Panel

    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="latin-1"))
    accept_every_text()
    console = make_console()
    console.print(Panel("2.85× …"))
    console.file.flush()
    text = raw.getvalue().decode("latin-1")
    assert "?" not in text and "| 2.85× ..." in text and "+-" in text


def on_a_terminal(code: str, **variables: str) -> str:
    """What a program writes that has a terminal for its output and its errors."""
    master, terminal = pty.openpty()
    try:
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **variables},
            stdout=terminal,
            stderr=terminal,
            timeout=120,
            check=True,
        )
    finally:
        os.close(terminal)
        text = _all_of(master)
        os.close(master)
    return text


def _all_of(master: int) -> str:
    """What was written to a terminal that nobody has open any more: it comes in pieces."""
    text = b""
    with contextlib.suppress(OSError):  # what the kernel says at its end
        while piece := os.read(master, 100_000):
            text += piece
    return text.decode()


SHOW = """
from halide_autotune.sdk.output import accept_every_text, show_progress
accept_every_text()
with show_progress("begin") as tell:
    tell("a step")
from halide_autotune.sdk.display.display import choose_display
display = choose_display(as_json=False, quiet=False, plain=False)
print(type(display).__name__)
"""


def test_a_dumb_terminal_gets_lines() -> None:
    assert on_a_terminal(SHOW, TERM="dumb").split() == ["begin", "a", "step", "PlainDisplay"]


def test_a_terminal_without_letters_and_colours_gets_a_picture_all_the_same() -> None:
    text = on_a_terminal(SHOW, TERM="xterm", NO_COLOR="1", PYTHONIOENCODING="ascii")
    assert text.isascii() and text.endswith("LiveDisplay\r\n")
    assert "\x1b[3" not in text.replace("\x1b[?25", "")
