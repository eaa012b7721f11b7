"""Whether a command uses Qualcomm's Hexagon SDK, and what it says: about one that is there, and one that is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from devices.device import Clock
from devices.device_probe import FastRpcNode
from devices.device_trouble import DeviceTrouble, TroubleKind
from sdk.chosen_devices import find_devices
from sdk.device_choice import DeviceChoice
from sdk.dsp_checks import check_dsp
from sdk.hexagon_choice import named_hexagon_sdk
from sdk.main import main
from sdk.settings import Settings
from targets.errors import UsageError
from targets.profile_loader import load_profile
from tests.stand_in_hexagon_sdk import TOOLS_VERSION, make_stand_in_hexagon_sdk
from tests.unit.sdk.test_device_facts import PHONE

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
    chosen = find_devices(target, names, None, None, named, lambda text: None, hexagon_sdk_root=given)
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
        assert f"4.5.0.3 with tools {TOOLS_VERSION}" in choice.note and f"which {names_it} names" in choice.note
        assert choice.note.endswith("a processor cycle counts as a nanosecond.")


def test_without_one_or_by_name_it_is_qemu(root: Path, settings: Settings) -> None:
    for choice in (choose(settings, None, "qemu"), choose(settings, root, "qemu")):
        (device,) = choice.devices
        assert (device.kind, device.hexagon_sdk) == ("qemu", None) and "hexagon-sim" not in choice.note
    (device,) = choose(settings, Path("/nowhere"), "local", target="host").devices
    assert device.hexagon_sdk is None


@pytest.mark.parametrize(
    ("names", "target", "given", "sentence"),
    [
        (("qemu",), "hexagon-v66", True, "--hexagon-sdk-root builds for the SDK's own simulator, and qemu is another"),
        ((), "arm64", True, "--hexagon-sdk-root is for Hexagon profiles, and arm64 is for arm-64-linux"),
        (("hexagon-sim",), "hexagon-v66", False, "hexagon-sim is of Qualcomm's Hexagon SDK, and none is named"),
        (("hexagon-sim",), "arm64", False, "hexagon-sim runs code for Hexagon, and profile arm64 is for"),
        (("hexagon-sim", "qemu"), "hexagon-v66", False, "cannot be joined by another device"),
    ],
)
def test_what_does_not_go_together(
    names: tuple[str, ...], target: str, given: bool, sentence: str, root: Path, settings: Settings
) -> None:
    with pytest.raises(UsageError) as caught:
        choose(settings, None, *names, target=target, given=root if given else None)
    assert sentence in caught.value.message


def test_an_sdk_for_other_versions_is_refused(root: Path, settings: Settings) -> None:
    older = replace(HEXAGON, halide_target="hexagon-32-noos-hvx_128-hvx_v62")
    with pytest.raises(UsageError, match="no C library for v62; it has them for v65, v66, v68"):
        named_hexagon_sdk(older, root, settings)


@pytest.mark.parametrize("command", ["build", "bench", "autotune"])
@pytest.mark.parametrize("by_option", [False, True])
def test_a_folder_that_is_no_sdk_is_one_sentence(
    command: str, by_option: bool, answer: Answer, examples: Path, tmp_path: Path
) -> None:
    nowhere = Path("/no/sdk")
    option = ("--hexagon-sdk-root", nowhere) if by_option else ()
    arguments = (command, examples / "separable_filter.py", "-t", "hexagon-v66", "--json", *option)
    code, out, errors = answer(*arguments, variable=None if by_option else nowhere)
    assert (code, out) == (2, "")
    assert errors.startswith("sdk: The Hexagon SDK in /no/sdk cannot be used: there is no program ")
    assert "HEXAGON_SDK_ROOT or --hexagon-sdk-root" in errors and len(errors.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == [], "nothing was built"


def test_doctor_knows_the_sdk_before_tuning_starts(root: Path, answer: Answer, tmp_path: Path) -> None:
    def checks(*arguments: str | Path, variable: Path | None = None) -> tuple[int, dict[str, dict[str, Any]]]:
        code, out, _ = answer("doctor", *arguments, "--json", variable=variable)
        return code, {check["name"]: check for check in json.loads(out)["checks"]}

    _, found = checks("-t", "hexagon-v66", "--hexagon-sdk-root", root)
    assert found["Hexagon SDK"]["passed"] and f"Clang version {TOOLS_VERSION}" in found["Hexagon SDK"]["found"]
    assert found["C toolchain (hexagon-v66)"]["found"].endswith("for v66, standalone")
    older = make_stand_in_hexagon_sdk(tmp_path / "sdk")
    next(older.rglob("lib/v65")).rmdir()
    code, found = checks("-t", "hexagon-v65", variable=older)
    assert code == 1 and "no C library for v65" in found["C toolchain (hexagon-v65)"]["found"]
    broken = make_stand_in_hexagon_sdk(tmp_path / "broken")
    next(broken.rglob("hexagon-clang")).write_text("#!/bin/sh\nexit 1\n")
    code, found = checks("-t", "hexagon-v66", variable=broken)
    assert code == 1 and "cannot be run" in found["Hexagon SDK"]["found"]


def test_what_phones_say_of_their_dsps() -> None:
    closed = replace(PHONE, fastrpc=(FastRpcNode("/dev/adsprpc-smd", usable=False),))
    ready = replace(
        PHONE,
        fastrpc=(*closed.fastrpc, FastRpcNode("/dev/fastrpc-cdsp", usable=True)),
        dsp_signature_folder="/vendor/lib/rfsa/adsp",
    )
    reached, signature = check_dsp("phone", lambda: ready)
    assert reached.passed and reached.found == "/dev/fastrpc-cdsp may be opened"
    assert signature.passed and "/vendor/lib/rfsa/adsp" in signature.found
    for probe, words in ((closed, "/dev/adsprpc-smd may not be opened"), (PHONE, "there is no device file")):
        checks = list(check_dsp("phone", lambda probe=probe: probe))
        assert words in checks[0].found
        assert not any(check.passed or check.needed for check in checks) and all(check.fix for check in checks)


def test_a_phone_that_does_not_answer() -> None:
    def probe() -> Any:
        raise DeviceTrouble(TroubleKind.LOST, "The phone is gone.", next_step="Plug it in.")

    (check,) = check_dsp("phone", probe)
    assert (check.passed, check.needed, check.found, check.fix) == (False, True, "The phone is gone.", "Plug it in.")
