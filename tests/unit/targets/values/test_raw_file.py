"""What a path says of a raw file."""

from __future__ import annotations

from pathlib import Path

import pytest

from halide_autotune.targets.values.raw_file import RawFile, file_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("photo.raw:1920x1080x3", RawFile(Path("photo.raw"), (1920, 1080, 3))),
        ("a b/photo.RAW:7", RawFile(Path("a b/photo.RAW"), (7,))),
        ("photo.raw:4x3:UInt16", RawFile(Path("photo.raw"), (4, 3), "uint16")),
        ("a.raw:1/b.raw:2", RawFile(Path("a.raw:1/b.raw"), (2,))),
    ],
)
def test_extents_and_type_come_after_the_file(text: str, expected: RawFile) -> None:
    raw = RawFile.of(Path(text))
    assert raw == expected
    assert RawFile.of(expected.path) == expected
    assert file_of(Path(text)) == expected.file


@pytest.mark.parametrize(
    "text", ["photo.raw", "photo.raw:", "photo.raw:0x3", "photo.raw:3x", "photo.npy:3x4", "photo.raw:1x1x1x1x1x1x1x1x1"]
)
def test_anything_else_is_a_path(text: str) -> None:
    assert RawFile.of(Path(text)) is None
    assert file_of(Path(text)) == Path(text)
