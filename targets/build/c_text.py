"""Texts in C sources."""

from __future__ import annotations


def c_string(text: str) -> str:
    """A literal with whatever is in a text, in UTF-8."""
    plain = (chr(byte) if chr(byte).isalnum() and byte < 128 else f"\\{byte:03o}" for byte in text.encode())
    return '"' + "".join(plain) + '"'
