"""The command lines of Qualcomm's compiler and simulator, and what is said where they cannot be used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from halide_autotune.targets.errors import ToolchainError
from halide_autotune.targets.hexagon.runners import open_hexagon_device_runner, open_hexagon_simulator
from halide_autotune.targets.hexagon.sdk import HexagonSdk, device_halide_target, dsp_version_of, find_hexagon_sdk
from halide_autotune.targets.hexagon.toolchain import HexagonToolchain
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.toolchain.c_toolchain import open_toolchain
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
    shims = [path.name for path in toolchain.shim_sources]
    assert shims == ["shims.c", "memory_shims.c", "standalone_shims.c"]
    assert toolchain.is_prepared and str(tmp_path) not in toolchain.fingerprint()
    fingerprints = {
        toolchain_of(sdk, f"hexagon-{version}", tmp_path).fingerprint() for version in ("v65", "v66", "v68")
    }
    assert len(fingerprints) == 3


def device_toolchain(sdk: HexagonSdk, folder: Path) -> HexagonToolchain:
    profile = load_profile("hexagon-v66")
    for_devices = replace(profile, halide_target=device_halide_target(profile.halide_target))
    toolchain = open_toolchain(for_devices, folder, None, sdk)
    assert isinstance(toolchain, HexagonToolchain)
    return toolchain


def test_what_builds_for_devices(sdk: HexagonSdk, tmp_path: Path) -> None:
    toolchain = device_toolchain(sdk, tmp_path)
    assert toolchain.describe() == f"Hexagon SDK 4.5.0.3, tools {TOOLS_VERSION} for v66, for QuRT"
    shims = [path.name for path in toolchain.shim_sources]
    assert shims == ["shims.c", "qurt_shims.c"]
    fingerprint = toolchain.fingerprint()
    assert "-shared" in fingerprint and str(tmp_path) not in fingerprint
    assert fingerprint != toolchain_of(sdk, "hexagon-v66", tmp_path).fingerprint()
    (sdk.root / "incs" / "HAP_power.h").write_text("/* another release's */")
    assert toolchain.fingerprint() != fingerprint


@pytest.mark.parametrize("part", ["incs/HAP_perf.h", "incs/HAP_power.h", "G0/pic"])
def test_an_sdk_without_what_devices_need(part: str, sdk: HexagonSdk, tmp_path: Path) -> None:
    lost = next(path for path in sdk.root.rglob(Path(part).name) if "v66" in path.parts or path.is_file())
    lost.rename(tmp_path / "lost")
    for use in (HexagonToolchain.version, HexagonToolchain.fingerprint, HexagonToolchain.describe):
        with pytest.raises(ToolchainError, match=rf"has no \S*{part}, which programs for") as caught:
            use(device_toolchain(sdk, tmp_path))
        assert "--device hexagon-sim" in caught.value.next_step
    assert "standalone" in toolchain_of(sdk, "hexagon-v66", tmp_path).describe()


def test_what_runs_on_devices(sdk: HexagonSdk) -> None:
    target = "hexagon-32-qurt-hvx-hvx_128-hvx_v66"
    assert device_halide_target("hexagon-32-noos-hvx-hvx_128-hvx_v66") == device_halide_target(target) == target
    runner = open_hexagon_device_runner(sdk, target)
    assert runner.program == sdk.device_runner and "v66" in runner.skeleton.parent.name
    assert "v66" in runner.clock_model and str(sdk.root) not in runner.clock_model
    for lacking, words in (
        (replace(sdk, device_runner=None), "has no run_main_on_hexagon for 64-bit Android"),
        (replace(sdk, skeletons=sdk.skeletons[:1]), "has no librun_main_on_hexagon_skel.so for v66"),
    ):
        with pytest.raises(ToolchainError) as caught:
            open_hexagon_device_runner(lacking, target)
        assert words in caught.value.message and "libs/run_main_on_hexagon" in caught.value.next_step


@pytest.mark.toolchain
def test_what_the_compiler_refuses_is_told(sdk: HexagonSdk, tmp_path: Path) -> None:
    source = tmp_path / "a.c"
    source.write_text("int a;\n")
    with pytest.raises(ToolchainError, match=r"(?s)a\.c does not compile for Hexagon v66 .*hexagon-clang.*-fnew-flag"):
        toolchain_of(sdk, "hexagon-v66", tmp_path).compile_c(source, tmp_path / "a.o", [], ["-fnew-flag"])


def test_what_runs(sdk: HexagonSdk) -> None:
    target = "hexagon-32-noos-hvx-hvx_128-hvx_v66"
    simulator = open_hexagon_simulator(sdk, target)
    program = str(sdk.compiler.with_name("hexagon-sim"))
    assert simulator.command == (program, "-mv66g_1024", "--timing", "--simulated_returnval")
    assert simulator.arguments_mark == ("--",)
    assert TOOLS_VERSION in simulator.clock_model and str(sdk.root) not in simulator.clock_model
    newer = open_hexagon_simulator(replace(sdk, tools_version="9.0"), target)
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
