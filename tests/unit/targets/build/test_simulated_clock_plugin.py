"""Building the plug-in, and the emulator's arguments for it."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from halide_autotune.targets.build.simulated_clock_plugin import (
    SIMULATED_GUESTS,
    build_simulated_clock,
    check_emulator,
    simulated_clock_arguments,
)
from halide_autotune.targets.errors import EmulatorError, ProfileError, ToolchainError, UsageError
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.profile.profile import MachineParameters

MACHINE = MachineParameters(4, 32768, 1048576, 33554432, vector_bits=128)
PLUGIN = Path("/cache/clock.so")
EMULATOR = "/usr/bin/qemu-aarch64-static"
ENVIRONMENT = {"PATH": os.defpath}


def values(machine: MachineParameters, threads: int = 1) -> dict[str, str]:
    arguments = simulated_clock_arguments(PLUGIN, EMULATOR, machine, threads)
    pairs = arguments[arguments.index("-plugin") + 1].split(",")
    return dict(pair.split("=") for pair in pairs)


@pytest.mark.toolchain
def test_built_once(cache: ContentCache) -> None:
    first = build_simulated_clock(ENVIRONMENT, cache)
    built_ns = first.stat().st_mtime_ns
    assert first.read_bytes()[:4] == b"\x7fELF"
    assert build_simulated_clock(ENVIRONMENT, cache) == first
    assert first.stat().st_mtime_ns == built_ns


@pytest.mark.toolchain
def test_built_again_by_another_compiler(tmp_path: Path) -> None:
    compiler = tmp_path / "gcc"

    def built_by(name: str) -> bytes:
        compiler.write_text(f'#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\necho {name} > "$2"\n')
        compiler.chmod(stat.S_IRWXU)
        return build_simulated_clock({"PATH": str(tmp_path)}, ContentCache(tmp_path / "cache")).read_bytes()

    assert [built_by(name) for name in ("one", "another")] == [b"one\n", b"another\n"]


def test_without_a_compiler(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match=r"needs a C compiler: none of gcc, cc, clang") as caught:
        build_simulated_clock({"PATH": str(tmp_path)}, ContentCache(tmp_path / "cache"))
    assert "apt-get install gcc" in caught.value.next_step


@pytest.mark.toolchain
def test_compiler_that_fails(tmp_path: Path) -> None:
    compiler = tmp_path / "gcc"
    compiler.write_text("#!/bin/sh\necho no licence >&2\nexit 1\n")
    compiler.chmod(stat.S_IRWXU)
    with pytest.raises(ToolchainError, match=r"plug-in does not compile (?s:.*)no licence"):
        build_simulated_clock({"PATH": str(tmp_path)}, ContentCache(tmp_path / "cache"))


def test_caches_are_the_machine_s() -> None:
    assert values(MACHINE) == {
        "file": str(PLUGIN),
        "l1_bytes": "32768",
        "l2_bytes": "1048576",
        "last_level_bytes": "33554432",
        "memory_percent": "100",
    }


def test_level_2_may_be_the_last() -> None:
    assert values(replace(MACHINE, last_level_cache_bytes=1048576))["last_level_bytes"] == "0"
    assert values(replace(MACHINE, last_level_cache_bytes=None))["last_level_bytes"] == "0"


def test_unknown_caches_get_common_sizes() -> None:
    known = values(MachineParameters(4, None, None, None, vector_bits=128))
    assert (known["l1_bytes"], known["l2_bytes"], known["last_level_bytes"]) == ("32768", "524288", "0")


def test_many_cores_share_memory() -> None:
    assert values(MACHINE, threads=4)["memory_percent"] == "100"
    assert values(MACHINE, threads=16)["memory_percent"] == "400"


def test_comma_in_a_path_is_doubled() -> None:
    arguments = simulated_clock_arguments(Path("/a,b/clock.so"), EMULATOR, MACHINE, 1)
    assert "file=/a,,b/clock.so,l1_bytes=32768" in arguments[-1]


def test_the_memory_of_64_bit_guests_has_a_place() -> None:
    places = {
        guest: "-R" in simulated_clock_arguments(PLUGIN, f"qemu-{guest}", MACHINE, 1) for guest in SIMULATED_GUESTS
    }
    # Those of 32 bits always have one, and QEMU has none for an x86-64.
    assert places == {"x86_64": False, "aarch64": True, "arm": False, "riscv64": True, "hexagon": False}
    assert "-R" in simulated_clock_arguments(PLUGIN, EMULATOR, MACHINE, 1)


@pytest.mark.parametrize("threads", [0, -1, 257])
def test_threads_that_cannot_be_simulated(threads: int) -> None:
    with pytest.raises(UsageError, match=rf"{threads} threads; expected 1 to 256"):
        simulated_clock_arguments(PLUGIN, EMULATOR, MACHINE, threads)


@pytest.mark.parametrize(
    "changed",
    [
        replace(MACHINE, l2_cache_bytes=32768),
        replace(MACHINE, last_level_cache_bytes=65536),
        replace(MACHINE, l1_data_cache_bytes=64),
        replace(MACHINE, last_level_cache_bytes=2**40),
    ],
)
def test_caches_that_cannot_be_simulated(changed: MachineParameters) -> None:
    with pytest.raises(ProfileError, match="cannot be simulated"):
        simulated_clock_arguments(PLUGIN, EMULATOR, changed, 1)


def emulator(folder: Path, words: str, options: str = "-plugin  QEMU_PLUGIN  [file=]<file>") -> str:
    program = folder / "qemu-x86_64"
    program.write_text(f"#!/bin/sh\n[ \"$1\" = -h ] && echo '{options}' || echo '{words}'\n")
    program.chmod(stat.S_IRWXU)
    return str(program)


@pytest.mark.parametrize("version", ["6.0.0", "7.2.22 (Debian 1:7.2+dfsg-7)", "8.2.10", "10.1.0"])
def test_emulators_that_fit(tmp_path: Path, version: str) -> None:
    check_emulator(emulator(tmp_path, f"qemu-x86_64 version {version}"), ENVIRONMENT)


def test_emulators_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(EmulatorError, match=r"does not support version 5\.2 of ") as caught:
        check_emulator(emulator(tmp_path, "qemu-x86_64 version 5.2.0"), ENVIRONMENT)
    assert "QEMU 6.0 or later" in caught.value.next_step
    with pytest.raises(EmulatorError, match="takes no plug-ins, as static builds"):
        check_emulator(emulator(tmp_path, "qemu-x86_64 version 10.0.13", "-cpu  QEMU_CPU  model"), ENVIRONMENT)


def test_program_that_is_no_emulator(tmp_path: Path) -> None:
    with pytest.raises(EmulatorError, match="prints no version"):
        check_emulator(emulator(tmp_path, "hello"), ENVIRONMENT)


def test_emulator_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(EmulatorError, match="cannot be run: No such file"):
        check_emulator(str(tmp_path / "qemu-arm"), ENVIRONMENT)


@pytest.mark.parametrize("command", ["/usr/bin/qemu-mips", "/opt/my-emulator"])
def test_emulators_of_unknown_guests(command: str) -> None:
    with pytest.raises(EmulatorError, match=f"does not support {command}, only .*qemu-hexagon"):
        check_emulator(command, ENVIRONMENT)
