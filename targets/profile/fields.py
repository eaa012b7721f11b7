"""The tables of a profile's file: which keys there are, what each may hold, and the profile they make."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from halide_autotune.targets.profile.cuda_card import check_card, known_cards
from halide_autotune.targets.profile.halide_target import HalideTarget, parse_halide_target
from halide_autotune.targets.profile.profile import (
    ANDROID_TRIPLES,
    AUTOSCHEDULER_PARAMETERS,
    BASELINE_WEIGHTS,
    AutoschedulerChoice,
    EmulatorChoice,
    MachineParameters,
    TargetProfile,
    ToolchainChoice,
)
from halide_autotune.targets.values.checks import (
    Unfit,
    matching,
    nearest,
    one_line,
    one_of,
    shown,
    shown_key,
    whole_number,
)
from halide_autotune.targets.values.records import Example, Source, part_of, record

Tables = Mapping[str, Any]

_TEXT_PARAMETERS = frozenset(["search_space_options", "partial_schedule_path"])
_SET_BY_THE_LOOP = {
    "parallelism": "machine.parallelism sets it",
    "weights_path": "start_weights sets it",
    "random_dropout_seed": "every candidate gets its own seed",
}
# zig's names for Halide's architectures.
_TRIPLE_ARCHITECTURES: Mapping[tuple[str, int], tuple[str, ...]] = {
    ("x86", 64): ("x86_64",),
    ("x86", 32): ("x86",),
    ("arm", 64): ("aarch64",),
    ("arm", 32): ("arm", "thumb"),
    ("riscv", 64): ("riscv64",),
    ("riscv", 32): ("riscv32",),
    ("powerpc", 64): ("powerpc64", "powerpc64le"),
    ("powerpc", 32): ("powerpc",),
    ("wasm", 32): ("wasm32",),
    ("wasm", 64): ("wasm64",),
    ("hexagon", 32): ("hexagon",),
}


def _halide_target(value: object) -> str:
    return parse_halide_target(one_line(value)).text


def _power_of_two(value: object) -> int:
    number = whole_number(32, 65536)(value)
    if number.bit_count() != 1:
        raise Unfit("a power of two from 32 to 65536", str(number))
    return number


_start_weights = matching(
    rf"{BASELINE_WEIGHTS}|[^\x00-\x1f\x7f]*\.weights",
    f"'{BASELINE_WEIGHTS}' or the path of a file that ends in .weights",
)
_cache_bytes = whole_number(1, 2**40)


@dataclass(frozen=True)
class _Machine:
    parallelism: Annotated[int, whole_number(1, 65536), Example("the number of cores")]
    l1_data_cache_bytes: Annotated[int | None, _cache_bytes] = None
    l2_cache_bytes: Annotated[int | None, _cache_bytes] = None
    last_level_cache_bytes: Annotated[int | None, _cache_bytes] = None
    vector_bits: Annotated[int | None, _power_of_two] = None


@dataclass(frozen=True)
class _Gpu:
    card: Annotated[str | None, one_of(known_cards())] = None


@dataclass(frozen=True)
class _ProfileFile:
    halide_target: Annotated[str, _halide_target, Example('halide_target = "arm-64-linux"')]
    device_kind: Literal["local", "qemu"]
    machine: _Machine
    autoscheduler: AutoschedulerChoice
    toolchain: ToolchainChoice
    description: Annotated[str, one_line] = ""
    extends: Annotated[str | None, one_line] = None
    start_weights: Annotated[str, _start_weights] = BASELINE_WEIGHTS
    gpu: _Gpu = _Gpu()
    emulator: EmulatorChoice | None = None


def check_tables(tables: Tables, source: Source) -> None:
    """Check what a file says, which need not be a whole profile.

    Raises:
        ProfileError: naming the file, the key, what was expected and the nearest valid name.
    """
    if "name" in tables:
        raise source.refuse("the key 'name' does not belong here; the file's name is the profile's name.")
    source.check(part_of(_ProfileFile), tables)


def lay_over(base: Tables, tables: Tables) -> dict[str, Any]:
    """Return `base` with `tables` over it; another autoscheduler's parameters are dropped."""
    old, new = (each.get("autoscheduler", {}) for each in (base, tables))
    if new.get("name", old.get("name")) != old.get("name"):
        base = {key: value for key, value in base.items() if key != "autoscheduler"}
    return _merged(base, tables)


def make_profile(tables: Tables, *, name: str, origin: str, source: Source) -> TargetProfile:
    """Make the profile of tables that were checked one by one.

    Args:
        origin: the profile's `source`.
        source: for errors.

    Raises:
        ProfileError: a key is missing, or two keys do not fit each other.
    """
    card = known_cards().get(tables.get("gpu", {}).get("card"))
    if card is not None:
        tables = _merged({"machine": {"parallelism": card.multiprocessors}}, tables)
    file = source.check(record(_ProfileFile), tables)
    target = parse_halide_target(file.halide_target)
    check_card(card, target, file.autoscheduler.name, source)
    if file.device_kind == "qemu" and file.emulator is None:
        raise source.refuse("device_kind is 'qemu', so a table [emulator] is needed, with command = \"qemu-…\".")
    vector_bits = file.machine.vector_bits or target.vector_bits
    return TargetProfile(
        name=name,
        description=file.description,
        halide_target=file.halide_target,
        machine=MachineParameters(**vars(file.machine) | {"vector_bits": vector_bits}, gpu=card),
        autoscheduler=_autoscheduler(file.autoscheduler, source),
        toolchain=_toolchain(file.toolchain, target, source),
        device_kind=file.device_kind,
        emulator=file.emulator,
        start_weights=file.start_weights,
        source=origin,
    )


def _merged(base: Tables, tables: Tables) -> dict[str, Any]:
    merged = dict(base)
    for key, value in tables.items():
        merged[key] = _merged(merged[key], value) if isinstance(value, Mapping) and key in merged else value
    return merged


def _toolchain(toolchain: ToolchainChoice, target: HalideTarget, source: Source) -> ToolchainChoice:
    architecture = toolchain.triple.split("-")[0]
    expected = _TRIPLE_ARCHITECTURES.get((target.architecture, target.bits), ())
    if expected and architecture not in expected:
        raise source.refuse(
            f"key 'toolchain.triple': '{toolchain.triple}' is for another architecture than the Halide target "
            f"'{target.text}'; expected a triple that starts with {expected[0]}-."
        )
    if toolchain.kind != "android":
        return replace(toolchain, android_api_level=None)
    if target.operating_system != "android" or architecture not in ANDROID_TRIPLES:
        raise source.refuse(
            f"key 'toolchain.kind': 'android' does not fit the Halide target '{target.text}'; "
            "expected 'zig', or a target such as arm-64-android."
        )
    if not toolchain.triple.split("-")[-1].startswith("musl"):
        raise source.refuse(
            f"key 'toolchain.triple' must be for musl, such as {architecture}-linux-musl, not '{toolchain.triple}': "
            "it is linked statically where there is no Android NDK."
        )
    if toolchain.android_api_level is None:
        raise source.refuse(
            "the key 'toolchain.android_api_level' is missing; expected the API level of the oldest Android to run on, "
            "such as 28."
        )
    return toolchain


def _autoscheduler(autoscheduler: AutoschedulerChoice, source: Source) -> AutoschedulerChoice:
    name, valid = autoscheduler.name, AUTOSCHEDULER_PARAMETERS[autoscheduler.name]
    for parameter, value in autoscheduler.parameters.items():
        shown_name = shown_key(parameter)
        key = f"key 'autoscheduler.parameters.{shown_name}'"
        if parameter in _SET_BY_THE_LOOP:
            raise source.refuse(f"{key} does not belong here; {_SET_BY_THE_LOOP[parameter]}.")
        if parameter not in valid:
            close = nearest(parameter, valid)
            hint = f"the nearest is '{close}'" if close else f"it has {', '.join(valid) or 'none of its own'}"
            raise source.refuse(f"{key}: {name} has no parameter '{shown_name}'; {hint}.")
        if parameter not in _TEXT_PARAMETERS and not re.fullmatch(r"-?[0-9]{1,18}", value):
            raise source.refuse(f"{key} must be a whole number, not {shown(value)}.")
    return AutoschedulerChoice(name, dict(sorted(autoscheduler.parameters.items())))
