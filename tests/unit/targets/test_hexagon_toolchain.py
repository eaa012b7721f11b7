"""The command lines of Qualcomm's compiler and simulator, and what is said where they cannot be used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from targets.errors import ToolchainError
from targets.hexagon_sdk import HexagonSdk, dsp_version_of, find_hexagon_sdk
from targets.hexagon_simulator import open_hexagon_simulator
from targets.hexagon_toolchain import HexagonToolchain
from targets.open_toolchain import open_toolchain
from targets.profile_loader import load_profile
from tests.stand_in_hexagon_sdk import TOOLS_VERSION, make_stand_in_hexagon_sdk


@pytest.fixture
def sdk(tmp_path: Path) -> HexagonSdk:
    return find_hexagon_sdk(make_stand_in_hexagon_sdk(tmp_path / "4.5.0.3"))


def toolchain_of(sdk: HexagonSdk, target: str, folder: Path) -> HexagonToolchain:
    toolchain = open_toolchain(load_profile(target), folder, None, sdk)
    assert isinstance(toolchain, HexagonToolchain)
    return toolchain


def test_what_builds(sdk: HexagonSdk, tmp_path: Path) -> None:
    toolchain = toolchain_of(sdk, "hexagon-v66", tmp_path)
    assert toolchain.describe() == f"Hexagon SDK 4.5.0.3, tools {TOOLS_VERSION} for v66, standalone"
    companions = [path.name for path in toolchain.companion_sources]
    assert companions == ["hexagon_companion.c", "hexagon_standalone_companion.c"]
    assert toolchain.is_prepared and str(tmp_path) not in toolchain.fingerprint()
    fingerprints = {
        toolchain_of(sdk, f"hexagon-{version}", tmp_path).fingerprint() for version in ("v65", "v66", "v68")
    }
    assert len(fingerprints) == 3


def test_what_the_compiler_refuses_is_told(sdk: HexagonSdk, tmp_path: Path) -> None:
    source = tmp_path / "a.c"
    source.write_text("int a;\n")
    with pytest.raises(ToolchainError, match=r"(?s)a\.c does not compile for Hexagon v66 .*hexagon-clang.*-fnew-flag"):
        toolchain_of(sdk, "hexagon-v66", tmp_path).compile_c(source, tmp_path / "a.o", [], ["-fnew-flag"])


def test_what_runs(sdk: HexagonSdk) -> None:
    simulator = open_hexagon_simulator(sdk, "hexagon-32-noos-hvx-hvx_128-hvx_v66")
    program = str(sdk.compiler.with_name("hexagon-sim"))
    assert simulator.command == (program, "-mv66g_1024", "--timing", "--simulated_returnval")
    assert simulator.arguments_mark == ("--",)
    assert TOOLS_VERSION in simulator.clock_model and str(sdk.root) not in simulator.clock_model
    newer = replace(simulator, sdk=replace(sdk, tools_version="9.0"))
    other = open_hexagon_simulator(sdk, "hexagon-32-noos-hvx_v68")
    assert len({simulator.clock_model, newer.clock_model, other.clock_model}) == 3


def test_versions_of_targets() -> None:
    assert dsp_version_of("hexagon-32-noos-hvx-hvx_128-hvx_v68-no_asserts") == "v68"
    assert dsp_version_of("hexagon-32-noos-hvx_128") == "v62"


def test_an_sdk_that_lacks_something(sdk: HexagonSdk, tmp_path: Path) -> None:
    older = replace(sdk, dsp_versions=("v60", "v62"))
    for use in (
        lambda: toolchain_of(older, "hexagon-v66", tmp_path).version(),
        lambda: open_hexagon_simulator(older, "hexagon-32-noos-hvx_v66"),
    ):
        with pytest.raises(ToolchainError, match=r"has no C library for v66; it has them for v60, v62\."):
            use()
    with pytest.raises(ToolchainError, match="has no simulator hexagon-sim") as caught:
        open_hexagon_simulator(replace(sdk, simulator=None), "hexagon-32-noos-hvx_v66")
    assert "--device qemu" in caught.value.next_step


@pytest.mark.parametrize(
    ("script", "said"),
    [("#!/bin/sh\necho libtinfo.so.5 is missing >&2\nexit 127\n", "libtinfo"), ("#!/no/shell\n", "")],
)
def test_a_compiler_that_does_not_run(sdk: HexagonSdk, tmp_path: Path, script: str, said: str) -> None:
    sdk.compiler.write_text(script)
    with pytest.raises(ToolchainError, match=f"compiler .* cannot be run: .*{said}") as caught:
        toolchain_of(sdk, "hexagon-v66", tmp_path).version()
    assert "HEXAGON_SDK_ROOT" in caught.value.next_step
