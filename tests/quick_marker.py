"""Tells quick tests from those that compile, emulate, start servers or load TensorFlow, and holds them to it.

A test with a fixture of `TOOLCHAIN_FIXTURES` or in a folder of `TOOLCHAIN_FOLDERS` gets the marker `toolchain`; others
that need it have it written down. What is left, without `slow`, gets the marker `quick`, and fails where it starts such
a program after all: `make check` stays fast without anybody having to look after it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
TOOLCHAIN_FOLDERS = ("end_to_end",)
TOOLCHAIN_FIXTURES = frozenset(
    (
        # Compilers and what they made.
        "build_cpp_generators",
        "cpp_compiler",
        "ndk_root",
        "open_agent",
        "probe",
        "runner_of",
        "workshop",
        "x86_probe",
        # Servers.
        "adb",
        "board",
        "device",
        "open_transport",
        "start_server",
        # TensorFlow and Halide's searches for it.
        "forked_tensorflow",
        "searches",
        "tensorflow_ready",
    )
)
_PROGRAMS = frozenset(
    ("adb", "c++", "cc", "chromium", "clang++", "cmake", "g++", "gcc", "hexagon-clang", "make", "ssh-agent", "sshd")
)
_MODULES = ("ziglang", "halide_autotune.autotune_loop.cost_model.process.model_worker", "benchmarks.random_schedules")
# Versions and options are soon told, and `ctypes.util.find_library` asks gcc where a library is.
_QUESTIONS = frozenset(("--version", "version", "-h", "-Wl,-t"))
_LOOKED_AT = 12  # words of a command: compilers have no shorter names for what comes after


class QuickGuard:
    """Fails a quick test that starts what no quick test may start.

    Only the main thread is watched: what an earlier test left in another thread is not this test's doing.
    """

    def __init__(self) -> None:
        self._is_watching = False
        sys.addaudithook(self._hear)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if _needs_toolchain(item):
                item.add_marker("toolchain")
            if not any(item.get_closest_marker(name) for name in ("toolchain", "slow", "hardware")):
                item.add_marker("quick")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._is_watching = item.get_closest_marker("quick") is not None
        try:
            return (yield)
        finally:
            self._is_watching = False

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self._is_watching or threading.current_thread() is not threading.main_thread():
            return
        if event == "import":
            started = "TensorFlow" if arguments[0] == "tensorflow" else None
        elif event == "subprocess.Popen":
            executable, words = arguments[:2]
            started = _costly([executable, *words] if isinstance(words, list | tuple) else [executable])
        else:
            return
        if started is not None:
            pytest.fail(f"This test uses {started}: give it the marker 'toolchain' (see tests/quick_marker.py).")


def _needs_toolchain(item: pytest.Item) -> bool:
    folder = item.path.relative_to(TESTS).parts[0]
    return folder in TOOLCHAIN_FOLDERS or not TOOLCHAIN_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))


def _costly(command: list[object]) -> str | None:
    if not _QUESTIONS.isdisjoint(map(str, command[1:])):
        return None
    for word in command[:_LOOKED_AT]:
        name = os.path.basename(os.fsdecode(word)) if isinstance(word, str | bytes | os.PathLike) else ""
        if name in _PROGRAMS or name in _MODULES or name.startswith("qemu-"):
            return name
    return None
