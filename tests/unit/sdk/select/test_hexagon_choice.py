"""Whether a command uses Qualcomm's Hexagon SDK, and what it says: about one that is there, and one that is not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from halide_autotune.autotune_loop.specification.options import DeviceOptions
from halide_autotune.devices.device import Clock
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.health.probe import DspProbe, FastRpcNode
from halide_autotune.devices.inventory.file import load_inventory
from halide_autotune.sdk.checks.check import Check
from halide_autotune.sdk.checks.machine_checks import check_dsp, check_machine
from halide_autotune.sdk.main import main
from halide_autotune.sdk.project.preparation import Workbench
from halide_autotune.sdk.select.chosen_devices import find_devices
from halide_autotune.sdk.select.device_choice import DeviceChoice, choose_devices
from halide_autotune.sdk.select.hexagon_choice import named_hexagon_sdk, tell_of_sdk
from halide_autotune.sdk.select.trial_place import open_trial_place
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.hexagon.sdk import find_hexagon_sdk
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.profile.profile import ProfileListing
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler
from tests.run_specs import make_record, make_spec
from tests.stand_in_hexagon_sdk import TOOLS_VERSION, make_stand_in_hexagon_sdk
from tests.unit.sdk.inventory.test_device_facts import PHONE

HEXAGON = load_profile("hexagon-v66")

Answer = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_stand_in_hexagon_sdk(tmp_path_factory.mktemp("sdk") / "4.5.0.3")


@pytest.fixture
def answer(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> Answer:
    """Runs a command where the variable names a folder, or nothing."""
    monkeypatch.setenv("SDK_CACHE_DIR", str(settings.cache_folder))
    monkeypatch.setenv("SDK_CONFIG_DIR", str(settings.config_folder))
    monkeypatch.chdir(tmp_path)

    def ask(*arguments: str | Path, variable: Path | None = None) -> tuple[int, str, str]:
        if variable is None:
            monkeypatch.delenv("HEXAGON_SDK_ROOT", raising=False)
        else:
            monkeypatch.setenv("HEXAGON_SDK_ROOT", str(variable))
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        said = capfd.readouterr()
        return code, said.out, said.err

    return ask


def choose(
    settings: Settings, root: Path | None, *names: str, target: str = "hexagon-v66", given: Path | None = None
) -> DeviceChoice:
    named = replace(settings, hexagon_sdk_root=root)
    chosen = find_devices(DeviceOptions(target, names, hexagon_sdk_root=given), named, lambda text: None)
    return chosen.choice


def test_its_simulator_is_the_device_where_an_sdk_is_named(root: Path, settings: Settings) -> None:
    for choice, names_it in (
        (choose(settings, root), "HEXAGON_SDK_ROOT"),
        (choose(settings, None, given=root), "--hexagon-sdk-root"),
        (choose(settings, root, "hexagon-sim"), "HEXAGON_SDK_ROOT"),
    ):
        (device,) = choice.devices
        assert (device.name, device.kind, device.clock) == ("hexagon-sim", "hexagon-sim", Clock.SIMULATED)
        assert device.hexagon_sdk is not None and device.hexagon_sdk.root == root
        assert device.measuring_cores == 0 and device.threads == 4
        assert f"4.5.0.3 with tools {TOOLS_VERSION}" in choice.note and names_it in choice.note
        assert choice.note.endswith("a processor cycle counts as a nanosecond.")


@pytest.mark.toolchain
def test_without_one_or_by_name_it_is_qemu(root: Path, settings: Settings) -> None:
    for choice in (choose(settings, None, "qemu"), choose(settings, root, "qemu")):
        (device,) = choice.devices
        assert (device.kind, device.hexagon_sdk) == ("qemu", None) and "hexagon-sim" not in choice.note
    (device,) = choose(settings, Path("/nowhere"), "local", target="host").devices
    assert device.hexagon_sdk is None


@pytest.mark.parametrize(
    ("names", "target", "given", "message"),
    [
        (("qemu",), "hexagon-v66", True, "--hexagon-sdk-root is for the SDK's simulator and phones' DSPs, and qemu"),
        ((), "arm64", True, "--hexagon-sdk-root is for Hexagon profiles, and arm64 is for arm-64-linux"),
        (("hexagon-sim",), "hexagon-v66", False, "hexagon-sim is part of Qualcomm's Hexagon SDK"),
        (("hexagon-sim",), "arm64", False, "hexagon-sim runs code for Hexagon, and profile arm64 is for"),
        (("hexagon-sim", "qemu"), "hexagon-v66", False, "cannot be combined with another device"),
    ],
)
def test_what_does_not_go_together(
    names: tuple[str, ...], target: str, given: bool, message: str, root: Path, settings: Settings
) -> None:
    with pytest.raises(UsageError) as caught:
        choose(settings, None, *names, target=target, given=root if given else None)
    assert message in caught.value.message


@pytest.fixture
def phones(settings: Settings, tmp_path: Path) -> Path:
    """An inventory: a phone that is known by its processor, one by its DSP, a board, an emulator."""
    file = tmp_path / "devices.toml"
    file.write_text(
        """
[devices.phone]
profile = "arm64-android"
transport = "adb"
address = "127.0.0.1:1"
slots = 2
cores = [0, 1]

[devices.phone.machine]
parallelism = 8
l2_cache_bytes = 524288

[devices.other]
profile = "arm64-android"
transport = "adb"
address = "127.0.0.1:2"

[devices.board]
profile = "arm64"
transport = "ssh"
address = "pi@127.0.0.1:3"

[devices.avd]
profile = "arm64-android"
transport = "adb"
address = "127.0.0.1:4"
emulated = true
"""
    )
    return file


def test_a_phone_that_is_named_is_its_dsp(root: Path, settings: Settings, phones: Path) -> None:
    inventory = load_inventory(phones)
    sdk = find_hexagon_sdk(root)
    chosen = choose_devices(("phone", "other"), HEXAGON, None, inventory, lambda entries: {}, sdk)
    choice = tell_of_sdk(chosen, root)
    assert [device.name for device in choice.devices] == ["phone.1", "other"], "a DSP has no slots"
    for device in choice.devices:
        assert (device.kind, device.clock, device.threads) == ("adb", Clock.CYCLES, 4)
        assert device.dsp is not None and device.dsp.dsp_version == "v66" and device.hexagon_sdk == sdk
        assert not (device.is_emulated or device.has_canary or device.measuring_cores)
    assert choice.profile == replace(HEXAGON, halide_target="hexagon-32-qurt-hvx-hvx_128-hvx_v66")
    assert "Timing on the DSP of phone.1, other with the Hexagon SDK 4.5.0.3" in choice.note
    (device,) = choose_devices(("phone.2",), HEXAGON, 2, inventory, lambda entries: {}, sdk).devices
    assert (device.name, device.threads, device.remote and device.remote.slot) == ("phone.2", 2, 1)
    (device,) = choose_devices(("phone.2",), load_profile("arm64-android"), 2, inventory, lambda entries: {}).devices
    assert (device.dsp, device.clock) == (None, Clock.WALL), "for its own profile it is its processor"


def test_without_a_name_a_dsp_is_only_one_that_the_inventory_calls_so(root: Path, phones: Path) -> None:
    sdk = find_hexagon_sdk(root)
    (device,) = choose_devices((), HEXAGON, None, load_inventory(phones), lambda entries: {}, sdk).devices
    assert device.kind == "hexagon-sim"
    phones.write_text(phones.read_text().replace('"arm64-android"', '"hexagon-v66"', 1))
    inventory = load_inventory(phones)
    (device,) = choose_devices((), HEXAGON, None, inventory, lambda entries: {}, sdk).devices
    assert device.name == "phone.1" and device.dsp is not None
    (device,) = choose_devices((), HEXAGON, None, inventory, lambda entries: {}, None).devices
    assert device.kind == "qemu", "nothing else reaches a DSP"


@pytest.mark.parametrize(
    ("name", "with_sdk", "next_step"),
    [
        ("phone", False, "--hexagon-sdk-root"),
        ("board", True, "Name a phone with --device"),
        ("avd", True, "Name a phone with --device"),
    ],
)
def test_devices_without_a_dsp_that_can_be_reached(
    name: str, with_sdk: bool, next_step: str, root: Path, phones: Path
) -> None:
    sdk = find_hexagon_sdk(root) if with_sdk else None
    with pytest.raises(UsageError) as caught:
        choose_devices((name,), HEXAGON, None, load_inventory(phones), lambda entries: {}, sdk)
    assert name in caught.value.message and next_step in caught.value.next_step


def test_an_sdk_that_lacks_the_phones_part_is_one_message(
    answer: Answer, examples: Path, phones: Path, tmp_path: Path
) -> None:
    bare = make_stand_in_hexagon_sdk(tmp_path / "sdk")
    next(bare.rglob("run_main_on_hexagon/ship/*/run_main_on_hexagon")).unlink()
    blur = examples / "separable_filter.py"
    arguments = ("autotune", blur, "-t", "hexagon-v66", "--device", "phone", "--inventory", phones, "--json")
    before = sorted(path.name for path in tmp_path.iterdir())
    code, out, errors = answer(*arguments, "--hexagon-sdk-root", bare)
    assert (code, out) == (2, "") and len(errors.strip().splitlines()) == 1
    assert "has no run_main_on_hexagon for 64-bit Android" in errors and "libs/run_main_on_hexagon" in errors
    assert sorted(path.name for path in tmp_path.iterdir()) == before, "nothing was built"


def test_an_sdk_for_other_versions_is_refused(root: Path, settings: Settings) -> None:
    older = replace(HEXAGON, halide_target="hexagon-32-noos-hvx_128-hvx_v62")
    with pytest.raises(UsageError, match="no C library for v62; it has them for v65, v66, v68"):
        named_hexagon_sdk(older, root, settings)


@pytest.mark.parametrize("command", ["build", "bench", "autotune"])
@pytest.mark.parametrize("by_option", [False, True])
def test_a_folder_that_is_no_sdk_is_one_message(
    command: str, by_option: bool, answer: Answer, examples: Path, tmp_path: Path
) -> None:
    nowhere = Path("/no/sdk")
    option = ("--hexagon-sdk-root", nowhere) if by_option else ()
    arguments = (command, examples / "separable_filter.py", "-t", "hexagon-v66", "--json", *option)
    code, out, errors = answer(*arguments, variable=None if by_option else nowhere)
    assert (code, out) == (2, "")
    assert errors.startswith("sdk: The Hexagon SDK in /no/sdk cannot be used: ")
    assert "HEXAGON_SDK_ROOT or --hexagon-sdk-root" in errors and len(errors.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == [], "nothing was built"


def test_doctor_knows_the_sdk_before_tuning_starts(root: Path, answer: Answer, tmp_path: Path) -> None:
    def checks(*arguments: str | Path, variable: Path | None = None) -> tuple[int, dict[str, dict[str, Any]]]:
        code, out, _ = answer("doctor", *arguments, "--json", variable=variable)
        return code, {check["name"]: check for check in json.loads(out)["checks"]}

    _, found = checks("-t", "hexagon-v66", "--hexagon-sdk-root", root)
    assert found["Hexagon SDK"]["passed"] and f"Clang version {TOOLS_VERSION}" in found["Hexagon SDK"]["found"]
    assert found["C toolchain (hexagon-v66)"]["found"].endswith("for v66, standalone")
    assert found["phones' DSPs (hexagon-v66)"]["found"] == "run_main_on_hexagon and its skeleton for v66"
    older = make_stand_in_hexagon_sdk(tmp_path / "sdk")
    next(older.rglob("hexagon_toolv84_v66/*.so")).unlink()
    _, found = checks("-t", "hexagon-v66", variable=older)
    lacking = found["phones' DSPs (hexagon-v66)"]
    assert "librun_main_on_hexagon_skel.so for v66" in lacking["found"] and not (lacking["passed"] or lacking["needed"])
    shutil.rmtree(next(older.rglob("lib/v65")))
    code, found = checks("-t", "hexagon-v65", variable=older)
    assert code == 1 and "no C library for v65" in found["C toolchain (hexagon-v65)"]["found"]
    broken = make_stand_in_hexagon_sdk(tmp_path / "broken")
    next(broken.rglob("hexagon-clang")).write_text("#!/bin/sh\nexit 1\n")
    code, found = checks("-t", "hexagon-v66", variable=broken)
    assert code == 1 and "cannot be run" in found["Hexagon SDK"]["found"]


def test_doctor_wants_no_qemu_where_the_sdk_has_a_simulator(root: Path, settings: Settings, tmp_path: Path) -> None:
    listing = ProfileListing(HEXAGON.name, HEXAGON.source, HEXAGON, None)
    without_qemu = replace(settings, environment={**settings.environment, "PATH": str(tmp_path)})

    def target(sdk: Path | None) -> Check:
        checks = check_machine(replace(without_qemu, hexagon_sdk_root=sdk), [listing], must_run_here=True)
        (found,) = [check for check in checks if check.name == "target hexagon-v66"]
        return found

    assert target(root).passed
    assert target(root).found.endswith(
        "hexagon-sim; --device qemu does not work: the emulator qemu-hexagon is not installed"
    )
    without_simulator = make_stand_in_hexagon_sdk(tmp_path / "sdk")
    next(without_simulator.rglob("hexagon-sim")).unlink()
    for sdk in (None, without_simulator, tmp_path / "nowhere"):
        assert not target(sdk).passed and target(sdk).needed
        assert target(sdk).found == "the emulator qemu-hexagon is not installed"


@pytest.mark.parametrize("devices", [(), ("hexagon-sim",)])
def test_a_run_is_shipped_where_it_was_timed(
    devices: tuple[str, ...], root: Path, halide: HalideInstall, cpp_compiler: HostCppCompiler, settings: Settings
) -> None:
    named = replace(settings, hexagon_sdk_root=root)
    record = make_record(make_spec(profile=HEXAGON, parallelism=2), devices=("hexagon-sim",))
    run: Any = SimpleNamespace(folder=Path("run"), profile_name="hexagon-v66", record=record, task=record.spec.tasks[0])
    tools = Workbench(halide, ContentCache(settings.cache_folder), cpp_compiler)
    place = open_trial_place(run, DeviceOptions(device=devices), tools, named, lambda step: None)
    (device,) = place.devices
    assert device.hexagon_sdk is not None and device.hexagon_sdk.root == root
    assert device.threads == (4 if devices else 2) and "Hexagon SDK 4.5.0.3" in place.tools.toolchain.describe()


def test_shipping_with_an_sdk_needs_a_run_for_hexagon(answer: Answer, tmp_path: Path, root: Path) -> None:
    (tmp_path / "run").mkdir()
    make_record(make_spec(profile="x86-64")).write(tmp_path / "run")
    code, out, errors = answer("ship", "run", "-o", "new", "--hexagon-sdk-root", root)
    assert (code, out) == (2, "") and not (tmp_path / "new").exists()
    assert "--hexagon-sdk-root is for Hexagon runs, and none of these is one. Leave it out." in errors


def test_what_phones_say_of_their_dsps() -> None:
    closed = replace(PHONE, dsp=DspProbe((FastRpcNode("/dev/adsprpc-smd", usable=False),)))
    ready = replace(
        PHONE,
        dsp=DspProbe((*closed.dsp.nodes, FastRpcNode("/dev/fastrpc-cdsp", usable=True)), "/vendor/lib/rfsa/adsp"),
    )
    reached, signature = check_dsp("phone", lambda: ready)
    assert reached.passed and reached.found == "/dev/fastrpc-cdsp can be opened"
    assert signature.passed and "/vendor/lib/rfsa/adsp" in signature.found
    for probe, words in ((closed, "/dev/adsprpc-smd"), (PHONE, "there is no device file")):
        checks = list(check_dsp("phone", MagicMock(return_value=probe)))
        assert words in checks[0].found
        assert not any(check.passed or check.needed for check in checks) and all(check.fix for check in checks)


def test_a_phone_that_does_not_answer() -> None:
    def probe() -> Any:
        raise DeviceTrouble(TroubleKind.LOST, "The phone is gone.", next_step="Plug it in.")

    (check,) = check_dsp("phone", probe)
    assert (check.passed, check.needed, check.found, check.fix) == (False, True, "The phone is gone.", "Plug it in.")
