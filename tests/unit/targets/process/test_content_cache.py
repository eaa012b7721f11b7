from __future__ import annotations

import hashlib
import multiprocessing
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from halide_autotune.targets.errors import ToolchainError
from halide_autotune.targets.process.content_cache import ContentCache, file_sha256

Key = list[str | bytes]


def write(content: str) -> Callable[[Path], None]:
    def build(path: Path) -> None:
        path.write_text(content)

    return build


def files_of(cache: ContentCache) -> list[str]:
    return sorted(path.name for path in cache.root.rglob("*") if path.is_file() and path.parent.name != "locks")


@pytest.fixture
def cache(tmp_path: Path) -> ContentCache:
    return ContentCache(tmp_path / "cache")


def test_builds_once_and_keeps_the_file(cache: ContentCache) -> None:
    built: list[Path] = []

    def build(path: Path) -> None:
        built.append(path)
        path.write_text("content")

    first = cache.get_or_build(["a", "b"], ".o", build)
    second = cache.get_or_build(["a", "b"], ".o", build)
    assert first == second and first.name.endswith(".o")
    assert first.read_text() == "content"
    assert len(built) == 1
    assert not built[0].parent.exists()


def test_executables_keep_their_mode(cache: ContentCache) -> None:
    def build(path: Path) -> None:
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)

    assert os.access(cache.get_or_build(["tool"], "", build), os.X_OK)


@pytest.mark.parametrize("content", ["", "damaged", "content and more"])
def test_a_damaged_file_is_built_again(cache: ContentCache, content: str) -> None:
    path = cache.get_or_build(["a"], ".o", write("content"))
    path.write_text(content)
    assert cache.get_or_build(["a"], ".o", write("content")).read_text() == "content"


@pytest.mark.parametrize("seal", [None, b"", b"\xff\xfe", b"7 0000\n"])
def test_a_file_without_a_good_seal_is_built_again(cache: ContentCache, seal: bytes | None) -> None:
    path = cache.get_or_build(["a"], ".o", write("content"))
    sealed = path.with_name(f"{path.name}.seal")
    sealed.unlink()
    if seal is not None:
        sealed.write_bytes(seal)
    assert cache.get_or_build(["a"], ".o", write("anew")).read_text() == "anew"
    assert sealed.read_text() == f"4 {hashlib.sha256(b'anew').hexdigest()}\n"


def test_a_failed_build_leaves_nothing(cache: ContentCache) -> None:
    def build(path: Path) -> None:
        path.write_text("half")
        raise ToolchainError("no luck")

    with pytest.raises(ToolchainError, match="no luck"):
        cache.get_or_build(["a"], ".o", build)
    assert files_of(cache) == []
    assert cache.get_or_build(["a"], ".o", write("content")).read_text() == "content"


@pytest.mark.parametrize("build", [lambda path: None, lambda path: path.touch()])
def test_a_build_without_a_result_is_an_error(cache: ContentCache, build: Callable[[Path], None]) -> None:
    with pytest.raises(ToolchainError, match="wrote no file"):
        cache.get_or_build(["a"], ".o", build)
    assert files_of(cache) == []


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file is in the way")
    with pytest.raises(ToolchainError, match=f"cache folder {tmp_path / 'cache'} cannot be written"):
        ContentCache(tmp_path / "cache").get_or_build(["a"], ".o", write("content"))


def test_threads_build_once(cache: ContentCache) -> None:
    count = 0
    entered, proceed = threading.Event(), threading.Event()

    def build(path: Path) -> None:
        nonlocal count
        count += 1
        entered.set()
        proceed.wait(60)
        path.write_text("content")

    threads = [threading.Thread(target=cache.get_or_build, args=(["a"], ".o", build)) for _ in range(4)]
    threads[0].start()
    entered.wait(60)
    for thread in threads[1:]:
        thread.start()
    proceed.set()
    for thread in threads:
        thread.join()
    assert count == 1


def _build_in_process(root: Path, marks: Path) -> None:
    def build(path: Path) -> None:
        (marks / str(os.getpid())).touch()
        path.write_text("content" * 1000)

    assert ContentCache(root).get_or_build(["a"], ".o", build).read_text() == "content" * 1000


def test_processes_build_once(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_build_in_process, args=(tmp_path / "cache", marks)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert len(list(marks.iterdir())) == 1


@given(
    st.lists(st.text(max_size=5) | st.binary(max_size=5), max_size=4),
    st.lists(st.text(max_size=5) | st.binary(max_size=5), max_size=4),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
def test_different_keys_have_different_paths(cache: ContentCache, first: Key, second: Key) -> None:
    paths = [cache.get_or_build(key, ".o", write("content")) for key in (first, second)]
    assert (paths[0] == paths[1]) == (first == second)


def test_sha256_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    assert file_sha256(tmp_path / "file") == hashlib.sha256(b"abc").hexdigest()


def test_what_a_killed_process_was_building_is_deleted_by_the_next(cache: ContentCache) -> None:
    path = cache.get_or_build(["a"], ".o", write("content"))
    path.unlink()
    left = path.with_name(f".building-{path.name}")
    left.mkdir()
    (left / path.name).write_text("half of it")
    assert cache.get_or_build(["a"], ".o", write("content")) == path
    assert path.read_text() == "content" and not left.exists()
