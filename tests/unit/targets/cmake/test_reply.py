"""CMake's replies are files of a build folder: damaged ones end in one sentence, and nothing else is read for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from halide_autotune.targets.cmake.reply import read_reply, write_query
from halide_autotune.targets.errors import ToolchainError

MODEL = {
    "paths": {"source": "/project", "build": "/project/build"},
    "configurations": [
        {"name": "Debug", "targets": []},
        {"name": "Release", "targets": [{"name": "blur.generator", "id": "blur::@1", "jsonFile": "target-blur.json"}]},
    ],
}
TARGET = {
    "name": "blur.generator",
    "type": "EXECUTABLE",
    "paths": {"source": ".", "build": "."},
    "sources": [{"path": "blur.cpp", "compileGroupIndex": 0}],
    "a key of a later version": 1,
}


def write(folder: Path, **files: object) -> None:
    reply = folder / ".cmake/api/v1/reply"
    reply.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (reply / f"{name.replace('_', '-')}.json").write_text(json.dumps(value))


def index(json_file: str = "codemodel-v2.json", major: int = 2) -> dict[str, object]:
    return {"objects": [{"kind": "codemodel", "version": {"major": major, "minor": 7}, "jsonFile": json_file}]}


def test_the_newest_reply_is_read_and_of_its_configurations_release(tmp_path: Path) -> None:
    write(tmp_path, index_2026=index(), index_2025=index("none.json"), codemodel_v2=MODEL, target_blur=TARGET)
    reply = read_reply(tmp_path)
    assert (reply.source_folder, reply.configuration) == (Path("/project"), "Release")
    (entry,) = reply.targets
    assert reply.target(entry).sources[0].path == "blur.cpp"


def test_a_folder_without_a_reply_is_told_from_a_damaged_one(tmp_path: Path) -> None:
    write_query(tmp_path)
    again = rf"Run CMake again: cmake {tmp_path}"
    with pytest.raises(ToolchainError, match=rf"has no reply of CMake's file API.* {again}"):
        read_reply(tmp_path)
    write(tmp_path, index_1=index(major=3), codemodel_v2=MODEL)
    with pytest.raises(ToolchainError, match="has no reply"):
        read_reply(tmp_path)
    write(tmp_path, index_1=index("gone.json"))
    with pytest.raises(ToolchainError, match=rf"gone\.json: the file is missing\. {again}"):
        read_reply(tmp_path)
    write(tmp_path, index_1=index(), codemodel_v2={**MODEL, "configurations": []})
    with pytest.raises(ToolchainError, match="lists no configuration"):
        read_reply(tmp_path)
    write(tmp_path, codemodel_v2={**MODEL, "configurations": {}})
    with pytest.raises(ToolchainError, match=r"codemodel-v2\.json: key 'configurations' must be a list, not a table"):
        read_reply(tmp_path)
    (tmp_path / ".cmake/api/v1/reply/index-1.json").write_text("{")
    with pytest.raises(ToolchainError, match=r"index-1\.json: not valid JSON"):
        read_reply(tmp_path)


@pytest.mark.parametrize("name", ["../../../../secret.json", "/etc/passwd", ".hidden.json", "a/b.json"])
def test_no_file_outside_of_the_reply_is_read(tmp_path: Path, name: str) -> None:
    write(tmp_path, index_1=index(name))
    with pytest.raises(ToolchainError, match=r"key 'objects\[0\]\.jsonFile' must be the name of a JSON file"):
        read_reply(tmp_path)
