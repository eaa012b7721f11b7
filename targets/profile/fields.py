"""The fields of a profile file: which there are, what each may hold, and the profile they make.

A file's tables are flattened to dotted keys (`machine.parallelism`), so that a profile that extends another
is one dictionary laid over the other.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path

from targets.errors import ProfileError
from targets.profile.android import ANDROID_TRIPLES
from targets.profile.cuda_card import known_cards
from targets.profile.halide_target import HalideTarget, parse_halide_target
from targets.profile.profile import (
    BASELINE_WEIGHTS,
    AutoschedulerChoice,
    EmulatorChoice,
    MachineParameters,
    TargetProfile,
    ToolchainChoice,
)
from targets.profile.profile_card import check_card, profile_card

Fields = Mapping[str, object]

DEVICE_KINDS = ("local", "qemu")
TOOLCHAIN_KINDS = ("zig", "android")
PARAMETER_PREFIX = "autoscheduler.parameters."

# Halide 21's names; each was tried on its plug-in. An unknown name, or a value that is not a number, aborts
# the search process without a word.
_ADAMS_PARAMETERS = (
    "beam_size random_dropout disable_subtiling disable_memoized_features disable_memoized_blocks memory_limit"
).split()
_ANDERSON_PARAMETERS = (
    "beam_size random_dropout disable_subtiling randomize_tilings search_space_options"
    " freeze_inline_compute_root partial_schedule_path num_passes stack_factor"
    " shared_memory_limit_kb shared_memory_sm_limit_kb"
    " active_block_limit active_warp_limit"
).split()
AUTOSCHEDULER_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "Adams2019": tuple(_ADAMS_PARAMETERS),
    "Anderson2021": tuple(_ANDERSON_PARAMETERS),
    "Li2018": (),
    "Mullapudi2016": ("last_level_cache_size", "balance", "experimental_gpu_schedule"),
}
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


def flatten(table: Mapping[str, object], where: str, *, prefix: str = "") -> dict[str, object]:
    """Return a file's tables as dotted keys.

    Raises:
        ProfileError: a key is unknown, or is a table where a value belongs or the other way round.
    """
    found: dict[str, object] = {}
    for key, value in table.items():
        name = prefix + (key if key.isprintable() else ascii(key))
        if "." in key:
            raise _unknown_key(name, prefix, where)  # a quoted "machine.parallelism" is not the key of that table
        if name + "." in _TABLES:
            if not isinstance(value, Mapping):
                raise ProfileError(f"{where}: '{name}' must be a table ([{name}]), not {_kind(value)}.")
            found.update(flatten(value, where, prefix=name + "."))
        elif name in _CHECKS or prefix == PARAMETER_PREFIX:
            found[name] = value
        else:
            raise _unknown_key(name, prefix, where)
    return found


def check_fields(fields: Fields, where: str) -> dict[str, object]:
    """Check each value by itself; return them as a profile holds them (parameters as text, lists as tuples).

    Raises:
        ProfileError: naming the file, the key, what was expected and the nearest valid value.
    """
    checked: dict[str, object] = {}
    for name, value in fields.items():
        check = _parameter_text if name.startswith(PARAMETER_PREFIX) else _CHECKS[name]
        try:
            checked[name] = check(value)
        except _Unfit as error:
            raise ProfileError(f"{where}: key '{name}' must be {error}.") from error
        except ProfileError as error:
            raise ProfileError(f"{where}: key '{name}': {error.message}") from error
    return checked


def lay_over(base: Fields, fields: Fields) -> dict[str, object]:
    """Return `base` with `fields` over it; another autoscheduler's parameters are dropped."""
    merged = dict(base)
    name = "autoscheduler.name"
    if name in fields and fields[name] != base.get(name):
        merged = {key: value for key, value in merged.items() if not key.startswith(PARAMETER_PREFIX)}
    return merged | dict(fields)


def make_profile(fields: Fields, *, name: str, source: str, where: str) -> TargetProfile:
    """Make the profile of checked fields.

    Raises:
        ProfileError: a key is missing, or two keys do not fit each other.
    """
    card = profile_card(fields)
    if card is not None:
        fields = {"machine.parallelism": card.multiprocessors, **fields}
    for key in _REQUIRED:
        if key not in fields:
            raise ProfileError(f"{where}: the key '{key}' is missing; expected {_EXAMPLES[key]}.")
    halide_target = _text_of(fields, "halide_target")
    target = parse_halide_target(halide_target)
    check_card(card, target, _text_of(fields, "autoscheduler.name"), where)
    return TargetProfile(
        name=name,
        description=_text_of(fields, "description"),
        halide_target=halide_target,
        machine=MachineParameters(
            parallelism=_number_of(fields, "machine.parallelism") or 1,
            l1_data_cache_bytes=_number_of(fields, "machine.l1_data_cache_bytes"),
            l2_cache_bytes=_number_of(fields, "machine.l2_cache_bytes"),
            last_level_cache_bytes=_number_of(fields, "machine.last_level_cache_bytes"),
            vector_bits=_number_of(fields, "machine.vector_bits") or target.vector_bits,
            gpu=card,
        ),
        autoscheduler=_autoscheduler(fields, where),
        toolchain=_toolchain(fields, target, where),
        device_kind=_text_of(fields, "device_kind"),
        emulator=_emulator(fields, where),
        start_weights=_text_of(fields, "start_weights") or BASELINE_WEIGHTS,
        source=source,
    )


def nearest(word: str, valid: Iterable[str]) -> str | None:
    """Return the valid word that looks most like `word`, or None where none does."""
    close = get_close_matches(word, sorted(valid), n=1)
    return close[0] if close else None


class _Unfit(Exception):
    """A value is not what its key wants; the text says what was expected and what was found."""


def _toolchain(fields: Fields, target: HalideTarget, where: str) -> ToolchainChoice:
    kind, triple = _text_of(fields, "toolchain.kind"), _text_of(fields, "toolchain.triple")
    architecture = triple.split("-")[0]
    expected = _TRIPLE_ARCHITECTURES.get((target.architecture, target.bits), ())
    if expected and architecture not in expected:
        raise ProfileError(
            f"{where}: key 'toolchain.triple': '{triple}' is for another architecture than the Halide target "
            f"'{target.text}'; expected a triple that starts with {expected[0]}-."
        )
    cpu = _text_of(fields, "toolchain.cpu") or None
    if kind != "android":
        return ToolchainChoice(kind, triple, cpu=cpu)
    if target.operating_system != "android" or architecture not in ANDROID_TRIPLES:
        raise ProfileError(
            f"{where}: key 'toolchain.kind': 'android' does not fit the Halide target '{target.text}'; "
            "expected 'zig', or a target such as arm-64-android."
        )
    if not triple.split("-")[-1].startswith("musl"):
        raise ProfileError(
            f"{where}: key 'toolchain.triple' must be for musl, such as {architecture}-linux-musl, not '{triple}': "
            "it is linked statically where there is no Android NDK."
        )
    key = "toolchain.android_api_level"
    if key not in fields:
        raise ProfileError(f"{where}: the key '{key}' is missing; expected {_EXAMPLES[key]}.")
    return ToolchainChoice(kind, triple, _number_of(fields, key), cpu)


def _autoscheduler(fields: Fields, where: str) -> AutoschedulerChoice:
    name = _text_of(fields, "autoscheduler.name")
    valid = AUTOSCHEDULER_PARAMETERS[name]
    parameters: dict[str, str] = {}
    for key in sorted(key for key in fields if key.startswith(PARAMETER_PREFIX)):
        parameter, value = key.removeprefix(PARAMETER_PREFIX), _text_of(fields, key)
        if parameter in _SET_BY_THE_LOOP:
            raise ProfileError(f"{where}: key '{key}' does not belong here; {_SET_BY_THE_LOOP[parameter]}.")
        if parameter not in valid:
            close = nearest(parameter, valid)
            hint = f"the nearest is '{close}'" if close else f"it has {', '.join(valid) or 'none of its own'}"
            raise ProfileError(f"{where}: key '{key}': {name} has no parameter '{parameter}'; {hint}.")
        if parameter not in _TEXT_PARAMETERS and not re.fullmatch(r"-?[0-9]{1,18}", value):
            raise ProfileError(f"{where}: key '{key}' must be a whole number, not '{value}'.")
        parameters[parameter] = value
    return AutoschedulerChoice(name, parameters)


def _emulator(fields: Fields, where: str) -> EmulatorChoice | None:
    if not any(key.startswith("emulator.") for key in fields):
        if fields["device_kind"] == "qemu":
            raise ProfileError(
                f"{where}: device_kind is 'qemu' and the table [emulator] is missing; "
                'expected one with command = "qemu-…".'
            )
        return None
    if "emulator.command" not in fields:
        raise ProfileError(f"{where}: the key 'emulator.command' is missing; expected {_EXAMPLES['emulator.command']}.")
    system_root = fields.get("emulator.system_root")
    return EmulatorChoice(
        command=_text_of(fields, "emulator.command"),
        system_root=None if system_root is None else str(system_root),
        arguments=_texts_of(fields, "emulator.arguments"),
        debian_packages=_texts_of(fields, "emulator.debian_packages"),
    )


def _text_of(fields: Fields, key: str) -> str:
    return str(fields.get(key, ""))


def _texts_of(fields: Fields, key: str) -> tuple[str, ...]:
    value = fields.get(key, ())
    return value if isinstance(value, tuple) else ()


def _number_of(fields: Fields, key: str) -> int | None:
    value = fields.get(key)
    return value if isinstance(value, int) else None


def _unknown_key(name: str, prefix: str, where: str) -> ProfileError:
    if name == "name":
        return ProfileError(f"{where}: the key 'name' does not belong here; the file's name is the profile's name.")
    valid = [key for key in (*_CHECKS, *(table[:-1] for table in _TABLES)) if key.startswith(prefix)]
    close = nearest(name, valid) or nearest(name, (*_CHECKS, *(table[:-1] for table in _TABLES)))
    hint = f"the nearest is '{close}'" if close else f"expected one of {', '.join(sorted(valid))}"
    return ProfileError(f"{where}: '{name}' is not a key of a profile; {hint}.")


def _kind(value: object) -> str:
    """Say in TOML's words what a value is."""
    if isinstance(value, bool):
        return "true or false"
    for kind, word in ((str, "a string"), (int, "an integer"), (float, "a float"), (list, "a list")):
        if isinstance(value, kind):
            return word
    return "a table" if isinstance(value, Mapping) else "a date or time"


def _text(value: object) -> str:
    """Accept a string of one line, not empty."""
    if not isinstance(value, str):
        raise _Unfit(f"a string, not {_kind(value)}")
    if not value.strip() or not value.isprintable():
        raise _Unfit("a string of printable characters on one line, not empty")
    return value


def _one_of(valid: tuple[str, ...]) -> Callable[[object], str]:
    def check(value: object) -> str:
        text = _text(value)
        if text not in valid:
            close = nearest(text, valid)
            hint = f"; the nearest is '{close}'" if close else ""
            raise _Unfit(f"one of {', '.join(valid)}, not '{text}'{hint}")
        return text

    return check


def _whole_number(smallest: int, largest: int) -> Callable[[object], int]:
    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise _Unfit(f"an integer from {smallest} to {largest}, not {_kind(value)}")
        if not smallest <= value <= largest:
            # Python refuses to print integers of more than 4,300 digits.
            found = str(value) if abs(value) < 10**20 else "a number of more than 20 digits"
            raise _Unfit(f"an integer from {smallest} to {largest}, not {found}")
        return value

    return check


def _power_of_two(value: object) -> int:
    number = _whole_number(32, 65536)(value)
    if number.bit_count() != 1:
        raise _Unfit(f"a power of two from 32 to 65536, not {number}")
    return number


def _parameter_text(value: object) -> str:
    """Return an autoscheduler's parameter as Halide takes it: text, with true as 1 and false as 0."""
    if isinstance(value, bool | int):
        if abs(value) >= 10**18:
            raise _Unfit("a number of at most 18 digits")
        return str(int(value))
    if isinstance(value, float) and math.isfinite(value) and value == int(value) and abs(value) < 10**15:
        return str(int(value))
    if isinstance(value, float):
        raise _Unfit("a whole number")
    return _text(value)


def _halide_target(value: object) -> str:
    text = _text(value)
    parse_halide_target(text)
    return text


def _triple(value: object) -> str:
    text = _text(value)
    if not re.fullmatch(r"[a-z0-9_]+-[a-z0-9]+(-[a-z0-9]+(\.[0-9]+){0,3})?", text):
        raise _Unfit(f"a zig target such as aarch64-linux-gnu.2.28, not '{text}'")
    return text


def _cpu(value: object) -> str:
    text = _text(value)
    if not re.fullmatch(r"[a-z0-9_.+-]+", text) or text.startswith("-"):
        raise _Unfit(f"zig's name of a processor, such as hexagonv67, not '{text}'")
    return text


def _command(value: object) -> str:
    text = _text(value)
    if text.startswith("-") or any(character.isspace() for character in text):
        raise _Unfit(f"the name or path of one program (its arguments go into emulator.arguments), not '{text}'")
    return text


def _absolute_folder(value: object) -> str:
    text = _text(value)
    if not Path(text).is_absolute():
        raise _Unfit(f"an absolute path, not '{text}'")
    return text


def _list_of(check: Callable[[object], str]) -> Callable[[object], tuple[str, ...]]:
    def check_list(value: object) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise _Unfit(f"a list of strings, not {_kind(value)}")
        return tuple(check(item) for item in value)

    return check_list


def _debian_package(value: object) -> str:
    text = _text(value)
    if not re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", text):
        raise _Unfit(f"a list of names of Debian packages; '{text}' is none")
    return text


def _start_weights(value: object) -> str:
    text = _text(value)
    if text != BASELINE_WEIGHTS and not text.endswith(".weights"):
        raise _Unfit(f"'{BASELINE_WEIGHTS}' or the path of a file that ends in .weights, not '{text}'")
    return text


_CACHE_BYTES = _whole_number(1, 2**40)
_CHECKS: Mapping[str, Callable[[object], object]] = {
    "description": _text,
    "extends": _text,
    "halide_target": _halide_target,
    "device_kind": _one_of(DEVICE_KINDS),
    "start_weights": _start_weights,
    "machine.parallelism": _whole_number(1, 65536),
    "machine.l1_data_cache_bytes": _CACHE_BYTES,
    "machine.l2_cache_bytes": _CACHE_BYTES,
    "machine.last_level_cache_bytes": _CACHE_BYTES,
    "machine.vector_bits": _power_of_two,
    "gpu.card": _one_of(tuple(known_cards())),
    "autoscheduler.name": _one_of(tuple(AUTOSCHEDULER_PARAMETERS)),
    "toolchain.kind": _one_of(TOOLCHAIN_KINDS),
    "toolchain.triple": _triple,
    "toolchain.android_api_level": _whole_number(21, 99),
    "toolchain.cpu": _cpu,
    "emulator.command": _command,
    "emulator.system_root": _absolute_folder,
    "emulator.arguments": _list_of(_text),
    "emulator.debian_packages": _list_of(_debian_package),
}
_TABLES = ("machine.", "gpu.", "autoscheduler.", PARAMETER_PREFIX, "toolchain.", "emulator.")
_REQUIRED = (
    "halide_target",
    "device_kind",
    "machine.parallelism",
    "autoscheduler.name",
    "toolchain.kind",
    "toolchain.triple",
)
_EXAMPLES = {
    "halide_target": 'halide_target = "arm-64-linux"',
    "device_kind": f"one of {', '.join(DEVICE_KINDS)}",
    "machine.parallelism": "the number of cores, in [machine]",
    "autoscheduler.name": f"one of {', '.join(AUTOSCHEDULER_PARAMETERS)}, in [autoscheduler]",
    "toolchain.kind": f"one of {', '.join(TOOLCHAIN_KINDS)}, in [toolchain]",
    "toolchain.triple": "a zig target such as aarch64-linux-gnu.2.28, in [toolchain]",
    "toolchain.android_api_level": "the API level of the oldest Android to run on, such as 28, in [toolchain]",
    "emulator.command": "a program such as qemu-aarch64, in [emulator]",
}
